#!/usr/bin/env python3
"""`sluice up` beside llama.cpp's server: streams over HTTP from the same GGUF, in one run.

usage: bench/server.py [--sluice build/sluice] [--llama FOLDER] [--threads 1,2] [--rounds 4]
                       [--passes 3] [--streams 16] [--prompt 64] [--tokens 128]

FOLDER holds llama-server (also: the environment variable LLAMA_BIN). Without it only Sluice's own
numbers are printed. A round opens all streams at once, asks for exactly `tokens` tokens each and waits
for all; no two prompts are the same. Passes are interleaved and medians count. The client runs on the
same machine; let nothing else run.
"""
import argparse
import asyncio
import os
import random
import socket
import statistics
import tempfile
import time
import urllib.error
import urllib.request

import http_load

MODEL = "models/krill/krill-q8_0.gguf"
PLAIN_TOKENS = 4079  # Krill's ids from here on are control tokens.
BARS = {"tokens/s": 3.0, "ttft p99": 0.5}


def start_llama(folder, threads, streams):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def is_ready(server):
        for _ in range(400):
            if server.process.poll() is not None:
                return None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                return "127.0.0.1", port
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        return None

    return http_load.Server([f"{folder}/llama-server", "-m", MODEL, "--port", str(port), "-t",
                             str(threads), "-tb", str(threads), "-np", str(streams), "-c",
                             str(streams * 2048), "--alias", "krill"], is_ready)


async def burst(address, options, random_):
    requests = [http_load.http_request(address, "/v1/completions", {
        "model": "krill", "prompt": [random_.randrange(3, PLAIN_TOKENS) for _ in range(options.prompt)],
        "max_tokens": options.tokens, "min_tokens": options.tokens, "ignore_eos": True,
        "temperature": 0, "stream": True, "stream_options": {"include_usage": True},
        "cache_prompt": False}) for _ in range(options.streams)]
    started = time.perf_counter()
    streams = await asyncio.gather(*(http_load.send(address, each) for each in requests))
    await asyncio.gather(*(each.done for each in streams))
    return time.perf_counter() - started, streams


async def measure(address, options, seed):
    random_ = random.Random(seed)
    await burst(address, options, random_)  # Memory is touched for the first time.
    wall, streams = 0.0, []
    for _ in range(options.rounds):
        seconds, answered = await burst(address, options, random_)
        wall += seconds
        streams += answered
    good = [each for each in streams if each.error is None]
    # llama.cpp may refuse its own output where random ids give no UTF-8; more is a failure.
    if len(good) < 0.8 * len(streams):
        raise SystemExit(f"{len(streams) - len(good)} of {len(streams)} streams failed, as in: "
                         f"{next(each.error for each in streams if each.error)}")
    return {"tokens/s": sum(each.tokens for each in good) / wall,
            "ttft p99": 1000 * http_load.percentile([each.first for each in good], 0.99)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--llama", default=os.environ.get("LLAMA_BIN", ""))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    options = parser.parse_args()
    has_peer = os.path.exists(f"{options.llama}/llama-server")
    if not has_peer:
        print("llama.cpp's server is not installed (LLAMA_BIN), so there is nothing to compare with\n")

    results = {}
    threads = [int(each) for each in options.threads.split(",")]
    for number in range(options.passes):
        for count in threads:
            with tempfile.TemporaryDirectory() as state, \
                    http_load.start_sluice(options.sluice, count, state) as server:
                sides = {"ours": asyncio.run(measure(server.address, options, number))}
            if has_peer:
                with start_llama(options.llama, count, options.streams) as server:
                    sides["theirs"] = asyncio.run(measure(server.address, options, number))
            for side, measures in sides.items():
                for name, value in measures.items():
                    results.setdefault((count, name, side), []).append(value)

    print(f"{options.streams} streams over HTTP, prompts of {options.prompt} tokens, "
          f"{options.tokens} generated each; TTFT in ms")
    print(f"{'threads':<8}{'measure':>12}{'sluice':>10}"
          + (f"{'llama.cpp':>12}{'ratio':>8}{'bar':>8}" if has_peer else ""))
    for count in threads:
        for name, bar in BARS.items():
            ours = statistics.median(results[count, name, "ours"])
            line = f"{count:<8}{name:>12}{ours:>10.0f}"
            if has_peer:
                theirs = statistics.median(results[count, name, "theirs"])
                line += f"{theirs:>12.0f}{ours / theirs:>8.2f}{'≥' if bar > 1 else '≤':>5}{bar:>3}"
            print(line)


if __name__ == "__main__":
    main()
