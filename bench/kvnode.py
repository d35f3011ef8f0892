#!/usr/bin/env python3
"""`sluice kvnode` beside redis-server and the limit: GET and SET of large values, in one run.

usage: bench/kvnode.py [--check] [--rounds 5] [--mebibytes 2000] [--commands set,get] [--sizes 64,256,1024]
                       [--reader value_reader|redis-benchmark] [--sluice build/sluice]

All are asked over loopback, 8 connections, in turn and round by round; a ratio is of one round, and the
median of the rounds counts; behind it stand the least and the most. Bytes a CPU second are of the server's
own process clock. SET is redis-benchmark's. GET is asked by build/bench/value_reader, which has the kernel
drop what comes: a client that reads it computes longer than the server does, and is then what bytes a second
measure. What the client needs of the node's CPU time is printed beside its speed; --reader redis-benchmark
shows the other one. The limit is build/bench/writev_server, which answers GET with one text by writev and can
do nothing else. None writes to a disk. Skipped where redis-server or redis-benchmark is absent. --check: exit
status 1 if GET of 1 MiB is below 1.0 of redis-server's or 0.9 of the limit's bytes a second or bytes a CPU
second. Let nothing else run.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = ROOT / "build/bench/writev_server"
READER = ROOT / "build/bench/value_reader"
KEY = "key:__rand_int__"  # What redis-benchmark sets.
CONNECTIONS = "8"
GOALS = {"redis-server": 1.0, "writev": 0.9}  # Of GET of 1 MiB.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_node(program):
    process = subprocess.Popen([program, "kvnode", "--port", "0", "--http-port", "0", "--dram", "1GiB", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while True:
        event = json.loads(process.stdout.readline())
        if event["event"] == "ready":
            return process, int(event["url"].rsplit(":", 1)[1])


def redis_server():
    """The program. Debian's redis-tools has it as redis-check-rdb: it is what it is called."""
    return shutil.which("redis-server") or shutil.which("redis-check-rdb")


def start_redis():
    port = free_port()
    process = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"],
                               executable=redis_server(), stdout=subprocess.DEVNULL)
    while subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout != b"PONG\n":
        time.sleep(0.05)
    return process, port


def start_limit(size):
    process = subprocess.Popen([LIMIT, str(size)], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait()


def cpu_seconds(pid):
    """Of all its threads, to the nanosecond."""
    threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


def client_seconds():
    """Of all clients so far: servers are children, too, but nobody has waited for them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ask(port, command, size, count, reader="redis-benchmark"):
    if command == "get" and reader == "value_reader":
        subprocess.run([READER, str(port), KEY, str(size), str(count), CONNECTIONS], check=True)
        return
    subprocess.run(["redis-benchmark", "-p", str(port), "-t", command, "-d", str(size), "-n", str(count),
                    "-c", CONNECTIONS, "-q"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(process, port, command, size, options):
    """Bytes a second, bytes a CPU second of the server, and the client's CPU time by the server's."""
    count = max(64, (options.mebibytes << 20) // size)
    before, clients, began = cpu_seconds(process.pid), client_seconds(), time.perf_counter()
    ask(port, command, size, count, options.reader)
    took, cpu = time.perf_counter() - began, max(cpu_seconds(process.pid) - before, 0.001)
    return count * size / took, count * size / cpu, (client_seconds() - clients) / cpu


def compare(servers, command, size, options):
    """Prints what the first makes and its ratios to the others; whether a goal was missed."""
    ratios, ours = {name: [] for name in servers if name != "kvnode"}, []
    for _ in range(options.rounds):
        round_of = {name: measure(*server, command, size, options) for name, server in servers.items()}
        ours.append(round_of["kvnode"])
        for name, each in ratios.items():
            each.append([round_of["kvnode"][unit] / round_of[name][unit] for unit in range(2)])
    rate, _, client = (statistics.median(values) for values in zip(*ours))
    print(f"{command.upper()} {size >> 10:5} KiB  {rate / 1e9:5.2f} GB/s, the client {client:.2f} of the node's CPU time",
          flush=True)
    missed = False
    for name, each in ratios.items():
        texts = []
        for unit, values in zip(("a second", "a CPU second"), zip(*each)):
            middle = statistics.median(values)
            texts.append(f"{middle:5.2f} {unit} ({min(values):.2f} to {max(values):.2f})")
            missed |= command == "get" and size == 1 << 20 and middle < GOALS[name]
        print(f"    beside {name:13} {', '.join(texts)}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mebibytes", type=int, default=2000, help="moved by each measurement")
    parser.add_argument("--commands", default="set,get")
    parser.add_argument("--sizes", default="64,256,1024", help="KiB of a value")
    parser.add_argument("--reader", choices=["value_reader", "redis-benchmark"], default="value_reader",
                        help="who asks for GETs")
    parser.add_argument("--sluice", default=str(ROOT / "build/sluice"))
    options = parser.parse_args()
    if not redis_server() or not shutil.which("redis-benchmark"):
        print("kvnode: skipped, there is no redis-server or no redis-benchmark here")
        return 0
    servers = {"kvnode": start_node(options.sluice), "redis-server": start_redis()}
    missed = False
    try:
        for size in (int(size) << 10 for size in options.sizes.split(",")):
            if "set" in options.commands:
                missed |= compare(servers, "set", size, options)
            if "get" not in options.commands:
                continue
            for _, port in servers.values():
                ask(port, "set", size, 8)  # What is read.
            limit = start_limit(size)
            try:
                missed |= compare({**servers, "writev": limit}, "get", size, options)
            finally:
                stop(limit[0])
    finally:
        for process, _ in servers.values():
            stop(process)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
