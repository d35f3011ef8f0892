#!/usr/bin/env python3
"""Time to the first token of a long prompt, by where its keys and values come from.

Starts a cache node and an engine with the built-in model, and asks the engine the same prompt: cold,
from its pool, from its own memory after another prompt has filled the pool, from the node after the
engine was started anew and another prompt has filled its pool, and from the node's SSD after the node
was started anew, too. Each is repeated with other
prompts; the medians are printed with their ratios and goals. Alone on the machine, please.

    python3 bench/cache_ttft.py [--tokens 16384] [--repeats 3] [--check]
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

SLUICE = os.path.join(os.path.dirname(__file__), "..", "build", "sluice")


class Process:
    """A part of Sluice that says on stdout, as JSON, when it is ready."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([SLUICE, *arguments, "--json"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{arguments[0]} ended before it was ready")
            event = json.loads(line)
            if event.get("event") == "ready":
                self.ready = event
                return

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def prompt(number, tokens):
    draw = random.Random(number)
    return [draw.randrange(16, 4000) for _ in range(tokens)]


def first_token(url, ids, number):
    """Seconds until the first frame with a token, and where cached tokens came from."""
    body = {"rid": f"{number:032x}", "input_ids": ids, "stream": True,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True},
            "sluice": {"kv": {"tenant": "bench", "salt": "bench", "class": "chat"}}}
    request = urllib.request.Request(url + "/generate", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    begin = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            frame = json.loads(line[6:])
            if frame.get("output_ids"):
                took = time.perf_counter() - begin
                return took, frame["meta_info"].get("cached_tokens_by_source", {})
    raise SystemExit("no token came")


def metric(url, name):
    with urllib.request.urlopen(url + "/metrics") as answer:
        return sum(float(line.split()[-1]) for line in answer.read().decode().splitlines()
                   if line.startswith(name))


def settle(url):
    """Until no block goes anywhere any more."""
    last, same = -1, 0
    while same < 5:
        now = metric(url, "sluice_kv_published_total")
        same = same + 1 if now == last else 0
        last = now
        time.sleep(0.1)


def measure(tokens, number, folder):
    node_flags = ["kvnode", "--port", "0", "--http-port", "0", "--dram", "1GiB", "--ssd",
                  f"{folder}:8GiB"]
    pool = tokens + tokens // 4

    def engine(node):
        return Process("engine", "--pool-tokens", str(pool), "--kv-dram", "1GiB", "--kv-force", "load",
                       "--kv-store", node.ready["url"])

    ids, other = prompt(number, tokens), prompt(number + 1000, pool - 128)
    times, rid = {}, [number * 100]

    def ask(name, worker, wanted):
        rid[0] += 1
        took, sources = first_token(worker.ready["url"], ids, rid[0])
        if wanted and sources.get(wanted, 0) < tokens * 9 // 10:
            raise SystemExit(f"{name}: cached tokens came from {sources}, not from the {wanted}")
        times[name] = took

    node = Process(*node_flags)
    worker = engine(node)
    ask("cold", worker, None)
    settle(worker.ready["url"])
    ask("pool", worker, "pool")
    rid[0] += 1
    first_token(worker.ready["url"], other, rid[0])
    settle(worker.ready["url"])
    ask("dram", worker, "dram")
    worker.stop()

    def ask_after_other(name):
        """Of an engine that was started anew, but has served before: its pool is full and its memory touched,
        as it was when its own memory was asked."""
        worker = engine(node)
        rid[0] += 1
        first_token(worker.ready["url"], other, rid[0])
        settle(worker.ready["url"])
        ask(name, worker, "node")
        worker.stop()

    ask_after_other("node")
    node.stop()
    node = Process(*node_flags)
    ask_after_other("ssd")
    node.stop()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    rows = []
    for number in range(1, options.repeats + 1):
        folder = tempfile.mkdtemp(prefix="sluice-bench-")
        try:
            rows.append(measure(options.tokens, number, folder))
        finally:
            shutil.rmtree(folder)
    median = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    for name, value in median.items():
        spread = [row[name] * 1000 for row in rows]
        print(f"{name:5} {value * 1000:9.1f} ms   ({min(spread):.1f} to {max(spread):.1f})")
    goals = [("node / dram", median["node"] / median["dram"], 1.3),
             ("ssd / dram", median["ssd"] / median["dram"], 2.0)]
    goals += [(f"{name} / cold", median[name] / median["cold"], 0.1)
              for name in ("pool", "dram", "node", "ssd")]
    missed = 0
    for name, ratio, goal in goals:
        missed += ratio > goal
        print(f"{name:12} {ratio:6.3f}   goal <= {goal}{'' if ratio <= goal else '   missed'}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
