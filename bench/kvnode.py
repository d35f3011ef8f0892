#!/usr/bin/env python3
"""`sluice kvnode` beside redis-server: GET and SET of large values, in one run.

usage: bench/kvnode.py [--check] [--rounds 3] [--mebibytes 2000] [--sluice build/sluice]

Both are asked by redis-benchmark over loopback, 8 connections, in turn and round by round; a ratio is of
one round, and the median of the rounds counts. Bytes a CPU second are of the server's own process clock.
Neither writes to a disk. Skipped where redis-server or redis-benchmark is absent. --check: exit status 1
if GET of 1 MiB is below 1.0 of redis-server's bytes a second or bytes a CPU second. Let nothing else run.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = (64 * 1024, 256 * 1024, 1024 * 1024)


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


def start_redis():
    port = free_port()
    process = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"],
                               stdout=subprocess.DEVNULL)
    while subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout != b"PONG\n":
        time.sleep(0.05)
    return process, port


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(process, port, command, size, volume):
    """Bytes a second, and bytes a CPU second of the server."""
    count = max(64, volume // size)
    before, began = cpu_seconds(process.pid), time.perf_counter()
    subprocess.run(["redis-benchmark", "-p", str(port), "-t", command, "-d", str(size), "-n", str(count),
                    "-c", "8", "-q"], check=True, stdout=subprocess.DEVNULL)
    took, cpu = time.perf_counter() - began, cpu_seconds(process.pid) - before
    return count * size / took, count * size / max(cpu, 0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=2000, help="moved by each measurement")
    parser.add_argument("--sluice", default=str(ROOT / "build/sluice"))
    options = parser.parse_args()
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        print("kvnode: skipped, there is no redis-server or no redis-benchmark here")
        return 0
    ours, theirs = start_node(options.sluice), start_redis()
    missed = False
    try:
        for size in SIZES:
            for command in ("set", "get"):
                ratios = []
                for _ in range(options.rounds):
                    node = measure(*ours, command, size, options.mebibytes << 20)
                    redis = measure(*theirs, command, size, options.mebibytes << 20)
                    ratios.append((node[0] / redis[0], node[1] / redis[1], node[0]))
                speed, cpu, rate = (statistics.median(each) for each in zip(*ratios))
                print(f"{command.upper()} {size >> 10:5} KiB  {rate / 1e9:5.2f} GB/s   "
                      f"beside redis-server: {speed:5.2f} a second, {cpu:5.2f} a CPU second")
                missed |= command == "get" and size == SIZES[-1] and min(speed, cpu) < 1.0
    finally:
        for process, _ in (ours, theirs):
            process.send_signal(signal.SIGTERM)
            process.wait()
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
