#!/usr/bin/env python3
"""The native engine beside llama.cpp on the same GGUF files, in one run: a ratio for each measure.

usage: bench/engine.py [--sluice build/sluice] [--llama FOLDER] [--threads 1,2] [--passes 3] [GGUF...]

The last table has the time of a step by batch size: what invariance to the batch costs, in that there
is no other, faster path to choose.

FOLDER holds llama.cpp's llama-bench and llama-batched-bench (also: the environment variable
LLAMA_BIN). Without it only Sluice's own speeds are printed. Passes are interleaved and medians
count; let nothing else run. Speculation is off on both sides. A second table shows what it does
for a question, and for the same question asked again later in the conversation.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PROMPT, DECODE, BATCH = 512, 128, 16
# What is compared, in the order of the table.
MEASURES = ("prompt", "decode 1", f"decode {BATCH}")
KINDS = ("off", "lookup", "mtp", "auto")
# Of the table of step times.
BATCHES = (1, 2, 4, 8, 16, 32, 64)


def json_lines(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure_sluice(program, model, threads):
    rows = json_lines([program, "bench", "engine", "--model", model, "--threads", str(threads),
                       "--prompt", str(PROMPT), "--decode", str(DECODE), "--batch", f"1,{BATCH}",
                       "--repeats", "3", "--json"])
    for row in rows:
        name = "prompt" if row["test"] == "prompt" else f"decode {row['batch']}"
        yield name, row["tokens_per_s"]


def measure_speculation(program, model, threads):
    rows = json_lines([program, "bench", "engine", "--model", model, "--threads", str(threads),
                       "--prompt", "0", "--decode", str(DECODE), "--batch", "1", "--repeats", "5",
                       "--speculation", ",".join(KINDS), "--json"])
    return {(row["test"], row["speculation"]): row for row in rows if row["test"] != "decode"}


def print_speculation(program, models, threads):
    print(f"\n{'file':<20}{'threads':>8}{'measure':>12}{'speculation':>13}{'tokens/s':>12}"
          f"{'ratio':>8}{'accepted':>10}")
    for model in models:
        for count in threads:
            rows = measure_speculation(program, model, count)
            for (test, kind), row in sorted(rows.items()):
                drafted = row["drafted"]
                accepted = f"{row['accepted'] / drafted:.0%}" if drafted else "-"
                ratio = row["tokens_per_s"] / rows[test, "off"]["tokens_per_s"]
                print(f"{os.path.basename(model):<20}{count:>8}{test:>12}{kind:>13}"
                      f"{row['tokens_per_s']:>12.0f}{ratio:>8.2f}{accepted:>10}")


def measure_llama(folder, model, threads):
    for row in json_lines([f"{folder}/llama-bench", "-m", model, "-p", str(PROMPT), "-n",
                           str(DECODE), "-t", str(threads), "-r", "3", "-o", "jsonl"]):
        yield ("prompt" if row["n_prompt"] else "decode 1"), row["avg_ts"]
    for row in json_lines([f"{folder}/llama-batched-bench", "-m", model, "-c", str(BATCH * 512),
                           "-b", "2048", "-ub", "512", "-npp", "16", "-ntg", str(DECODE), "-npl",
                           str(BATCH), "-t", str(threads), "--output-format", "jsonl"]):
        yield f"decode {BATCH}", row["speed_tg"]


def print_steps(program, models, threads):
    print(f"\nms a step by batch, each sequence gets a token\n{'file':<20}{'threads':>8}"
          + "".join(f"{batch:>9}" for batch in BATCHES))
    for model in models:
        for count in threads:
            rows = json_lines([program, "bench", "engine", "--model", model, "--threads",
                               str(count), "--prompt", "0", "--decode", "64", "--batch",
                               ",".join(map(str, BATCHES)), "--repeats", "3", "--json"])
            print(f"{os.path.basename(model):<20}{count:>8}"
                  + "".join(f"{1000 * row['batch'] / row['tokens_per_s']:>9.3f}" for row in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--llama", default=os.environ.get("LLAMA_BIN", ""))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("models", nargs="*",
                        default=["models/krill/krill-q8_0.gguf", "models/krill/krill-f16.gguf"])
    options = parser.parse_args()
    has_peer = os.path.exists(f"{options.llama}/llama-bench")
    if not has_peer:
        print("llama.cpp is not installed (LLAMA_BIN), so there is nothing to compare with\n")

    speeds = {}
    for _ in range(options.passes):
        for model in options.models:
            for threads in map(int, options.threads.split(",")):
                sides = [("ours", measure_sluice(options.sluice, model, threads))]
                if has_peer:
                    sides.append(("theirs", measure_llama(options.llama, model, threads)))
                for side, rows in sides:
                    for name, speed in rows:
                        speeds.setdefault((model, threads, name, side), []).append(speed)

    print(f"{'file':<20}{'threads':>8}{'measure':>12}{'tokens/s':>12}"
          + (f"{'llama.cpp':>12}{'ratio':>8}" if has_peer else ""))
    for model in options.models:
        for threads in map(int, options.threads.split(",")):
            for name in MEASURES:
                ours = statistics.median(speeds[model, threads, name, "ours"])
                line = f"{os.path.basename(model):<20}{threads:>8}{name:>12}{ours:>12.0f}"
                if has_peer:
                    theirs = statistics.median(speeds[model, threads, name, "theirs"])
                    line += f"{theirs:>12.0f}{ours / theirs:>8.2f}"
                print(line)
    print_speculation(options.sluice, options.models,
                      [int(count) for count in options.threads.split(",")])
    print_steps(options.sluice, options.models, list(map(int, options.threads.split(","))))


if __name__ == "__main__":
    main()
