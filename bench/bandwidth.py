#!/usr/bin/env python3
"""Decoding a model larger than the caches, beside the speed at which this machine reads memory.

usage: bench/bandwidth.py [--sluice build/sluice] [--threads 1,2] [--passes 3] [--folder /tmp]

Makes a random model of 1 GB and its packed weights (another GB) in a folder of its own under --folder
and removes both. A token reads each weight it uses once, of the experts only the chosen ones; the limit
is what the same threads read in the same run. Let nothing else run. The bar is 0.90 of the limit.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import random_model
from engine import json_lines

BAR = 0.90


def measure(program, model, threads, passes):
    rows = {}
    for _ in range(passes):
        for row in json_lines([program, "bench", "engine", "--model", model, "--threads", threads,
                               "--prompt", "0", "--decode", "32", "--repeats", "5", "--json"]):
            rows.setdefault(row["threads"], []).append(row)
    return rows


def print_table(rows):
    print(f"{'threads':>8}{'tokens/s':>12}{'share of the limit':>20}")
    for threads, runs in rows.items():
        # The median pass, whole: its speed and its limit belong together.
        run = sorted(runs, key=lambda row: row["bandwidth_share"])[len(runs) // 2]
        share = run["bandwidth_share"]
        print(f"{threads:>8}{run['tokens_per_s']:>12.1f}{share:>20.2f}"
              f"{'' if share >= BAR else '  below the bar'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=options.folder) as folder:
        model = os.path.join(folder, "random.gguf")
        random_model.write_model(model, random_model.parse([model]))
        subprocess.run([options.sluice, "model", "pack", model], check=True, stdout=sys.stderr)
        print_table(measure(options.sluice, model, options.threads, options.passes))


if __name__ == "__main__":
    main()
