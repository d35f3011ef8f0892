#!/usr/bin/env python3
"""The engine on a busy machine: alone, and beside as many endless loops as there are processors.

usage: bench/busy.py [--sluice build/sluice] [--threads N] [--passes 3]

Fair sharing leaves the engine half of every processor, so half of its speed is what it could have. A team
that waits for a member without a processor loses more; the bar says that it never loses nine tenths.
Passes alternate and medians count.
"""
import argparse
import os
import statistics
import subprocess
import sys

from engine import json_lines

MODEL = "models/krill/krill-q8_0.gguf"
BAR = 0.10


def measure(program, threads):
    rows = json_lines([program, "bench", "engine", "--model", MODEL, "--threads", threads, "--prompt", "512",
                       "--decode", "64", "--batch", "1,16", "--repeats", "5", "--json"])
    return {(row["test"], row["batch"]): row["tokens_per_s"] for row in rows}


def measure_beside_loops(program, threads):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(os.cpu_count())]
    try:
        return measure(program, threads)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    alone, beside = [], []
    for _ in range(options.passes):
        alone.append(measure(options.sluice, options.threads))
        beside.append(measure_beside_loops(options.sluice, options.threads))
    print(f"tokens/s on {options.threads} threads, alone and beside {os.cpu_count()} endless loops")
    print(f"{'test':<8}{'batch':>8}{'alone':>10}{'beside':>10}{'ratio':>8}{'bar':>8}")
    for test, batch in alone[0]:
        free, busy = (statistics.median(each[test, batch] for each in passes)
                      for passes in (alone, beside))
        print(f"{test:<8}{batch:>8}{free:>10.0f}{busy:>10.0f}{busy / free:>8.2f}{'≥':>5}{BAR:.2f}")


if __name__ == "__main__":
    main()
