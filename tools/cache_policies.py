#!/usr/bin/env python3
"""Writes docs/cache-policies.md and its plots: what a shared cache keeps, by policy, size and nodes.

usage: tools/cache_policies.py [FOLDER]

FOLDER has Mooncake's conversation_trace.jsonl and synthetic_trace.jsonl (default: ../shared/data/traces).
Everything is `sluice sim-cache`, without a wall time: the same traces give the same bytes.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLUICE = ROOT / "build/sluice"
TRACES = ("conversation", "synthetic")
SIZES = (8000, 16000, 32000, 64000, 128000)
POLICIES = ("lru", "s3fifo", "worth", "attention")
NODES = (1, 4, 16, 64)

TEXT = """# Which blocks a cache gives up first

Made by `make simulate TRACES=FOLDER` from Mooncake's traces; blocks of 512 tokens, all in one cache that every worker shares (`sluice sim-cache`).
What counts is the share of *usable* prompt tokens: those that lie in an unbroken run from a prompt's beginning. A block behind a hole is loaded, too, but a
policy that makes holes makes work.

| policy | what goes first |
|---|---|
| `lru` | the longest unused |
| `s3fifo` | what was not asked for again while it was new (S3-FIFO) |
| `worth` | the fewest uses for its bytes, aged by what had to go before (greedy dual size frequency, every block at the same cost): what Sluice's tiers do |
| `attention` | the same, a block at the cost of computing it again, attention to everything before it included |

All of them give up ends of chains alone: a block never goes before those that follow it.

"""


def replay(folder, trace, *flags):
    out = subprocess.run([SLUICE, "sim-cache", "--trace", folder / f"{trace}_trace.jsonl", "--json", *flags],
                         check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def share(run):
    return f"{100 * run['usable_block_share']:.1f}"


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def by_size(folder, trace):
    runs = replay(folder, trace, "--policy", ",".join(POLICIES), "--blocks", ",".join(map(str, (*SIZES, 0))))
    found = {(run["policy"], run["blocks"]): run for run in runs}
    rows = [[f"`{policy}`"] + [share(found[policy, size]) for size in (*SIZES, 0)] for policy in POLICIES]
    return table(["policy"] + [f"{size:,}" for size in SIZES] + ["without end"], rows)


def by_nodes(folder, trace, blocks):
    runs = replay(folder, trace, "--blocks", str(blocks), "--nodes", ",".join(map(str, NODES)))
    rows = [[str(run["nodes"]), share(run), f"{100 * run['present_share']:.1f}"] for run in runs]
    return table(["nodes", "usable %", "present, behind holes too %"], rows)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "shared/data/traces")
    text = TEXT
    for trace in TRACES:
        plot = f"simulator/cache_{trace}.svg"
        replay(folder, trace, "--policy", ",".join(POLICIES), "--blocks", ",".join(map(str, (*SIZES, 0))),
               "--plot", str(ROOT / "docs" / plot))
        text += (f"## The {trace} trace\n\nUsable share of a prompt's full blocks in %, by blocks in the cache:\n\n"
                 f"{by_size(folder, trace)}\n![Usable share by size]({plot})\n\n")
    text += ("## Nodes\n\nThe same blocks on more nodes, placed by extents of 16, policy `worth`, the conversation trace, 64,000 blocks in\n"
             "all. Each node knows only its own blocks, so a chain may lose its middle on one node while its end lives on another: more\n"
             "nodes make more holes, and holes are what loading behind them is for.\n\n"
             + by_nodes(folder, "conversation", 64000))
    (ROOT / "docs/cache-policies.md").write_text(text)
    print("wrote docs/cache-policies.md")


if __name__ == "__main__":
    main()
