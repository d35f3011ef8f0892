#!/usr/bin/env python3
"""Lays the simulator beside real native workers on a slice of a trace, scaled to what they can do.

  tools/sim_native.py TRACES [--sluice build/sluice] [--requests 240] [--rate 5] [--scale 8]

Starts two native workers of one thread each with the built-in model, measures their engine with
`sluice bench --fit`, replays the slice with `sluice bench load` and simulates the same slice. Lengths are
divided by the scale; blocks are joined accordingly, so that who shares what with whom stays as it is.
Exits with 1 if p50 or p90 of the time to first token differ by more than a fifth. Let nothing else run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

WORKERS = 2


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--requests", type=int, default=240)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument("--scale", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        slice_file = folder / "slice.jsonl"
        slice_file.write_text(scaled(arguments.traces / "conversation_trace.jsonl",
                                     arguments.scale, arguments.first, arguments.requests))
        engine = folder / "engine.toml"
        state = folder / "state"
        started = run(arguments.sluice, "up", "--workers", str(WORKERS), "--threads", "1",
                      "--speculation", "off", "--port", "0", "--state", str(state), "--detach", "--json")
        url = next(json.loads(line)["url"] for line in started.splitlines() if '"ready"' in line)
        try:
            run(arguments.sluice, "bench", "--fit", "--threads", "1", "--neighbours",
                str(WORKERS - 1), "--url", url, "--output", str(engine))
            same = ["--trace", str(slice_file), "--rate", str(arguments.rate), "--json"]
            real = json.loads(run(arguments.sluice, "bench", "load", "--url", url, "--ignore-eos", *same))
        finally:
            run(arguments.sluice, "down", "--state", str(state))
        simulated = json.loads(run(arguments.sluice, "sim", "--engine", str(engine), "--workers",
                                   str(WORKERS), "--per-machine", str(WORKERS), *same))
        print(engine.read_text())
    print(f"{real['requests']} requests, {real['requests'] - real['succeeded']} failed; "
          f"{real['elapsed_s']:.1f} s; cached {100 * real['cached_tokens'] / real['prompt_tokens']:.1f} % "
          f"of prompt tokens, simulated {100 * simulated['hit_share']:.1f} %\n")
    print("| TTFT | real ms | simulated ms | off |\n|---|---|---|---|")
    far = False
    for name in ["p50", "p90", "p99"]:
        measured, predicted = real["ttft_ms"][name], simulated["ttft_ms"][name]
        off = predicted / measured - 1
        far |= name != "p99" and abs(off) > 0.2
        print(f"| {name} | {measured:.1f} | {predicted:.1f} | {100 * off:+.0f} % |")
    sys.exit(1 if far else 0)


if __name__ == "__main__":
    main()
