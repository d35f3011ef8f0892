#!/usr/bin/env python3
"""Time to first token of short chats, alone and beside long prompts, against a real `sluice up`.

usage: bench/mixed.py [--sluice build/sluice] [--threads 2] [--passes 3]

Two ways in which 64 short chats arrive, each measured with and without two clients that always have a
prompt of 4,000 tokens in flight (a new one as soon as the last was answered, so that the load never
ends before the chats do):

  together    all at once, right after the long prompts
  one by one  as a Poisson process of 20 a second, from a fixed seed: the same times in both runs

No two prompts are the same, so the prefix pool helps nobody. Speculation is off. The client runs on
the same machine; let nothing else run.
"""
import argparse
import asyncio
import random
import statistics
import tempfile

import http_load

CHATS, CHAT_TOKENS = 64, 24
LONG_CLIENTS, LONG_PROMPT, LONG_TOKENS = 2, 4_000, 8
RATE = 20.0  # Chats a second.
BAR = 3.0
PLAIN_TOKENS = 4079
WORDS = "river stone green quiet lamp forest seven bread winter paper road glass".split()


def chat(address, random_):
    question = " ".join(random_.choice(WORDS) for _ in range(16))
    return http_load.http_request(address, "/v1/chat/completions", {
        "model": "krill", "messages": [{"role": "user", "content": question}], "stream": True,
        "max_tokens": CHAT_TOKENS, "ignore_eos": True, "temperature": 0})


def long_prompt(address, random_):
    return http_load.http_request(address, "/v1/completions", {
        "model": "krill", "prompt": [random_.randrange(3, PLAIN_TOKENS) for _ in range(LONG_PROMPT)],
        "stream": True, "max_tokens": LONG_TOKENS, "ignore_eos": True, "temperature": 0})


async def answered(address, request):
    stream = await http_load.send(address, request)
    try:
        await stream.done
    finally:
        stream.transport.abort()  # The server stops working for whoever was cancelled.
    if stream.error is not None:
        raise SystemExit(f"a request failed: {stream.error}")
    return stream


async def keep_busy(address, random_):
    while True:
        await answered(address, long_prompt(address, random_))


async def ttfts(address, number, beside_long, one_by_one):
    """Times to first token of the chats, in ms, in pass `number`."""
    words = random.Random(f"{number} {one_by_one} {beside_long}")
    arrivals = random.Random(number)
    busy = [asyncio.create_task(keep_busy(address, words)) for _ in range(LONG_CLIENTS * beside_long)]
    await asyncio.sleep(0.05)  # The long prompts are under way.
    chats = []
    for _ in range(CHATS):
        chats.append(asyncio.create_task(answered(address, chat(address, words))))
        if one_by_one:
            await asyncio.sleep(arrivals.expovariate(RATE))
    streams = await asyncio.gather(*chats)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    return [1000 * stream.first for stream in streams]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()

    results = {}
    with tempfile.TemporaryDirectory() as state, http_load.start_sluice(
            options.sluice, options.threads, state, "--speculation", "off") as server:
        asyncio.run(ttfts(server.address, -1, True, False))  # Costs are learnt, memory is touched.
        for number in range(options.passes):
            for one_by_one in (False, True):
                for beside_long in (False, True):
                    times = asyncio.run(ttfts(server.address, number, beside_long, one_by_one))
                    results.setdefault((one_by_one, beside_long), []).append(times)

    def over_passes(key, share):
        return statistics.median(http_load.percentile(times, share) for times in results[key])

    print(f"Time to first token of {CHATS} short chats beside {LONG_CLIENTS} prompts of "
          f"{LONG_PROMPT} tokens, in ms; {options.threads} threads")
    print(f"{'arrival':<12}{'':>6}{'alone':>8}{'beside':>8}{'ratio':>8}{'bar':>8}")
    for one_by_one in (False, True):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            alone = over_passes((one_by_one, False), share)
            beside = over_passes((one_by_one, True), share)
            bar = f"{'≤':>5}{BAR:>3}" if name == "p99" else ""
            print(f"{'one by one' if one_by_one else 'together':<12}{name:>6}{alone:>8.0f}"
                  f"{beside:>8.0f}{beside / alone:>8.2f}{bar}")


if __name__ == "__main__":
    main()
