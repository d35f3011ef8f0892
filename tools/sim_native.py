#!/usr/bin/env python3
"""Lays the simulator beside real native workers on a slice of a trace, scaled to what they can do.

  tools/sim_native.py TRACES [--sluice build/sluice] [--repeats 3] [--requests 180] [--rate 6] [--scale 16]

Each repeat starts two native workers of one thread each with the built-in model, replays the slice with
`sluice bench load`, and measures the engine with `sluice bench --fit` before and after it: a machine is not as
fast at any time. The slice is simulated with both; the mean counts, and how far the two are apart says how
sure it is. Lengths are divided by the scale; blocks are joined accordingly, so that who shares what with whom
stays as it is. Prints each repeat; the gateway's own time to the first token, which the first text at the
client comes after; and what other processes took of the processors meanwhile: let nothing else run.
Exits with 1 if the median over the repeats of p50 or p90 of the time to first token is off by more than a
fifth.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

WORKERS = 2
NAMES = ["p50", "p90", "p99"]


def scaled(trace, scale, first, count):
    """Mooncake's ids name a block and all before it: every scale-th one names what they become."""
    rows = []
    for line in trace.read_text().splitlines()[first:first + count]:
        row = json.loads(line)
        ids = row["hash_ids"]
        blocks = ids[scale - 1::scale]
        if len(ids) % scale:
            blocks.append(ids[-1])
        rows.append({"timestamp": row["timestamp"],
                     "input_length": max(1, row["input_length"] // scale),
                     "output_length": max(1, row["output_length"] // scale),
                     "hash_ids": blocks})
    start = rows[0]["timestamp"]
    for row in rows:
        row["timestamp"] -= start
    return "".join(json.dumps(row) + "\n" for row in rows)


def run(*command):
    print("+ " + " ".join(command), file=sys.stderr)
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def busy_seconds():
    """Of all processors, by whatever runs there."""
    fields = [int(value) for value in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def used_by(pids):
    """Processor seconds of these processes and of all that this one has waited for."""
    total = 0.0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return total + ours.ru_utime + ours.ru_stime


def fit(arguments, url, engine):
    run(arguments.sluice, "bench", "--fit", "--threads", "1", "--neighbours", str(WORKERS - 1),
        "--url", url, "--output", str(engine))
    print(engine.read_text(), file=sys.stderr)


def first_tokens(admin, count):
    """The last requests' time to the first token as the gateway's records have it, in milliseconds."""
    while True:  # They are written in batches.
        with urllib.request.urlopen(f"{admin}/admin/records?since=1h") as answer:
            rows = [json.loads(line) for line in answer.read().splitlines() if line.strip()]
        times = sorted(row["ttft_ms"] for row in rows[-count:] if row.get("ttft_ms") is not None)
        if len(times) >= count:
            return {name: times[math.ceil(int(name[1:]) / 100 * count) - 1] for name in NAMES}
        time.sleep(0.2)


def simulate(arguments, engine, same):
    return json.loads(run(arguments.sluice, "sim", "--engine", str(engine), "--workers",
                          str(WORKERS), "--per-machine", str(WORKERS), *same))


def one_repeat(arguments, folder, slice_file):
    """What was real at the client and at the gateway, both simulations, and the share of the processors
    that others took."""
    engines, state = [folder / "before.toml", folder / "after.toml"], folder / "state"
    started = run(arguments.sluice, "up", "--workers", str(WORKERS), "--threads", "1",
                  "--speculation", "off", "--port", "0", "--state", str(state), "--detach", "--json")
    ready = next(json.loads(line) for line in started.splitlines() if '"ready"' in line)
    pids = [ready["gateway"]["pid"]] + [worker["pid"] for worker in ready["workers"]]
    same = ["--trace", str(slice_file), "--rate", str(arguments.rate), "--json"]
    try:
        fit(arguments, ready["url"], engines[0])
        busy, ours, began = busy_seconds(), used_by(pids), time.monotonic()
        real = json.loads(run(arguments.sluice, "bench", "load", "--url", ready["url"],
                              "--ignore-eos", *same))
        others = busy_seconds() - busy - (used_by(pids) - ours)
        others /= (time.monotonic() - began) * os.cpu_count()
        at_gateway = first_tokens(ready["admin"], real["succeeded"])
        fit(arguments, ready["url"], engines[1])
    finally:
        run(arguments.sluice, "down", "--state", str(state))
    return real, at_gateway, [simulate(arguments, engine, same) for engine in engines], others


def off_by(real, simulations):
    """By what share the simulations' mean is above what was real."""
    return {name: statistics.mean(each["ttft_ms"][name] for each in simulations) / real[name] - 1
            for name in NAMES}


def print_repeat(number, real, at_gateway, simulations, others):
    off = off_by(real["ttft_ms"], simulations)
    cells = [f"{real['ttft_ms'][name]:.0f} ({at_gateway[name]:.0f}) / "
             + ", ".join(f"{each['ttft_ms'][name]:.0f}" for each in simulations)
             + f" ({100 * off[name]:+.0f} %)" for name in NAMES]
    failed = real["requests"] - real["succeeded"]
    cached = (100 * real["cached_tokens"] / real["prompt_tokens"], 100 * simulations[0]["hit_share"])
    print(f"| {number} | " + " | ".join(cells) + f" | {failed} | {cached[0]:.1f} / {cached[1]:.1f} % | "
          f"{100 * others:.0f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--requests", type=int, default=180)
    parser.add_argument("--rate", type=float, default=6.0)
    parser.add_argument("--scale", type=int, default=16)
    arguments = parser.parse_args()
    print("| repeat | TTFT p50 ms, real (at the gateway) / simulated | p90 | p99 | failed | cached | "
          "others took |\n"
          "|---|---|---|---|---|---|---|")
    repeats = []
    for number in range(1, arguments.repeats + 1):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            slice_file = folder / "slice.jsonl"
            slice_file.write_text(scaled(arguments.traces / "conversation_trace.jsonl",
                                         arguments.scale, arguments.first, arguments.requests))
            repeats.append(one_repeat(arguments, folder, slice_file))
        print_repeat(number, *repeats[-1])
    each = [off_by(real["ttft_ms"], simulations) for real, _, simulations, _ in repeats]
    off = {name: statistics.median(one[name] for one in each) for name in NAMES}
    print("\nmedian: " + ", ".join(f"{name} {100 * off[name]:+.0f} %" for name in NAMES))
    sys.exit(1 if max(abs(off["p50"]), abs(off["p90"])) > 0.2 else 0)


if __name__ == "__main__":
    main()
