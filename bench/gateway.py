#!/usr/bin/env python3
"""Sluice's gateway beside nginx: CPU, latency and memory of passing requests on, in one run.

usage: bench/gateway.py [--check] [--rounds 3] [--only WORD] [--sluice build/sluice] [--tools build/bench]

nginx (1.22 of Debian 12, at its best settings) moves bytes; Sluice parses and checks every request, keeps
its journal, and writes a record of it. Both stand before the same two fake engines and are visited in
turn, round by round; a ratio is of one round, and the median of the rounds counts. Engines and load
generator run on CPU 0, either proxy alone on CPU 1, in real time where that is permitted. CPU is the
proxy's own process clock. Without nginx only Sluice's own numbers are printed. --check: exit status 1
if a bar is missed. Let nothing else run.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import http_load

ENGINES, NGINX, SLUICE = (18501, 18502), 18510, 18511
MIB = 1024
NGINX_CONF = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log; worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
    access_log off; client_max_body_size 64m; keepalive_requests 1000000; client_body_temp_path {dir}/1;
    proxy_temp_path {dir}/2; fastcgi_temp_path {dir}/3; uwsgi_temp_path {dir}/4; scgi_temp_path {dir}/5;
    upstream engines {{ server 127.0.0.1:{a}; server 127.0.0.1:{b}; keepalive 512; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s;
        }}
    }}
}}
"""
SLUICE_TOML = """
[gateway]
listen = "127.0.0.1:{port}"
admin = "127.0.0.1:0"
[record]
path = "{dir}/records"
[[pool]]
name = "bench"
engine = "openai"
model = "bench"
urls = ["http://127.0.0.1:{a}/v1", "http://127.0.0.1:{b}/v1"]
[plan]
stable = "bench"
"""


def pinned(cpu):
    """What a child does before it runs: one CPU, ahead of everything that is not a part of this."""
    def prepare():
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cpu})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return prepare


@contextlib.contextmanager
def process(command, cpu, answers_at=None):
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=pinned(cpu),
                                 env={**os.environ, "SLUICE_LOG": "error"})
        try:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(answers_at, timeout=1)
                    break
                time.sleep(0.05)
            else:
                log.seek(0)
                sys.exit(f"{command[0]} does not answer:\n{log.read()[-1000:].decode()}")
            yield child.pid
        finally:
            child.terminate()
            child.wait()


def run_load(options, targets, flags):
    """Rows by target, one a round."""
    command = [f"{options.tools}/gateway_load", "--rounds", str(options.rounds), *map(str, flags)]
    for target in targets:
        command += ["--target", target]
    out = subprocess.run(command, preexec_fn=pinned(0), check=True, capture_output=True, text=True)
    rows = {}
    for line in out.stdout.splitlines():
        row = json.loads(line)
        if row["errors"]:
            sys.exit(f"{row['target']}: {row['errors']} errors, as in: {row['first_error']}")
        rows.setdefault(row["target"], []).append(row)
    return rows


@contextlib.contextmanager
def proxies(options):
    """--target arguments of fresh ones."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    values = {"a": ENGINES[0], "b": ENGINES[1], "files": files, "connections": files - 100}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        targets = [f"direct={ENGINES[0]}"]
        if options.nginx:
            conf = pathlib.Path(folder, "nginx.conf")
            conf.write_text(NGINX_CONF.format(dir=folder, port=NGINX, **values))
            pid = stack.enter_context(process([options.nginx, "-c", str(conf)], 1,
                                              f"http://127.0.0.1:{NGINX}/v1/models"))
            worker = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
            targets.append(f"nginx={NGINX},{worker}")
        toml = pathlib.Path(folder, "sluice.toml")
        toml.write_text(SLUICE_TOML.format(dir=folder, port=SLUICE, **values))
        pid = stack.enter_context(process([options.sluice, "gateway", "--config", str(toml)], 1,
                                          f"http://127.0.0.1:{SLUICE}/ready"))
        targets.append(f"sluice={SLUICE},{pid}")
        yield targets


def per(what):
    return lambda row, direct: row["cpu_us"] / max(row[what], 1)


def added(what):
    return lambda row, direct: row[what] - direct[what]


def grown_kib_a_stream(row, direct):
    return (row["peak_kib"] - row["before_kib"]) / max(row["open"], 1)


def grown_bytes_a_byte(row, direct):
    return (row["peak_kib"] - row["before_kib"]) * MIB / (row["open"] * 1_000_000)


# Scenario, flags of the load generator, measures: name, function, bar, and whether it is beside nginx.
# Memory counts from a fresh process, in the first round alone. An open stream holds its prompt, too.
IDLE = ["--tokens", 100_000, "--delay-us", 1_000_000, "--warm-ms", 1500, "--measure-ms", 2000, "--rounds", 1]
SCENARIOS = [
    ("JSON, 32 connections", ["--connections", 32],
     [("CPU us/request", per("requests"), 2.5, True)]),
    ("JSON, 1 connection", ["--connections", 1],
     [("added p50, us", added("p50"), 1.6, True)]),
    ("100 streams, an event each 20 ms", ["--connections", 100, "--tokens", 32, "--delay-us", 20_000,
                                          "--ramp-ms", 640, "--measure-ms", 640],
     [("CPU us/event", per("events"), 1.4, True), ("added event p99, us", added("event_p99"), 2.0, True)]),
    ("32 bursts of 64 events", ["--connections", 32, "--tokens", 64],
     [("CPU us/event", per("events"), 1.5, True)]),
    ("first event after 200 ms", ["--connections", 4, "--tokens", 3, "--first-us", 200_000, "--delay-us",
                                  200_000, "--measure-ms", 1500, "--rounds", 1],
     [("head p50, us", lambda row, direct: row["head_p50"], 20_000, False)]),
    ("2,000 open streams", ["--connections", 2000, "--ramp-ms", 2000, *IDLE],
     [("KiB/stream", grown_kib_a_stream, 20, False)]),
    ("9,000 open streams", ["--connections", 9000, "--ramp-ms", 6000, *IDLE],
     [("KiB/stream", grown_kib_a_stream, 20, False)]),
    ("1 MB prompts, 4 connections", ["--connections", 4, "--prompt-bytes", 1_000_000, "--measure-ms", 1500],
     [("CPU us/request", per("requests"), 2.0, True), ("bytes/body byte", grown_bytes_a_byte, 3.0, False)]),
]


def show(scenario, name, nginx, ours, value, bar):
    good = value <= bar
    print(f"{scenario:<34}{name:>20}{nginx:>10}{ours:>10.1f}{value:>9.2f}{bar:>9g}  {'' if good else 'MISSED'}",
          flush=True)
    return good


def compare(options, scenario, flags, measures):
    with proxies(options) as targets:
        rows = run_load(options, targets, flags)
    good = True
    for name, measure, bar, is_ratio in measures:
        sides = {target: [measure(row, direct) for row, direct in zip(rows[target], rows["direct"])]
                 for target in rows if target != "direct"}
        if name in ("KiB/stream", "bytes/body byte"):
            sides = {target: values[:1] for target, values in sides.items()}
        ours = statistics.median(sides["sluice"])
        theirs = f"{statistics.median(sides['nginx']):.1f}" if "nginx" in sides else "-"
        if not is_ratio:
            good &= show(scenario, name, theirs, ours, ours, bar)
        elif "nginx" in sides:
            ratio = statistics.median(a / b for a, b in zip(sides["sluice"], sides["nginx"]))
            good &= show(scenario, name, theirs, ours, ratio, bar)
        else:
            print(f"{scenario:<34}{name:>20}{'-':>10}{ours:>10.1f}")
    return good


def native(options):
    """A 4 KB prompt rendered and tokenised by the gateway; the engine is a process of its own."""
    engine = http_load.Server([options.sluice, "engine", "--json", "--threads", "1"],
                              lambda server: json.loads(server.process.stdout.readline())["url"],
                              preexec_fn=pinned(0))
    with engine, tempfile.TemporaryDirectory() as folder:
        command = [options.sluice, "gateway", "--port", str(SLUICE), "--admin-port", "0", "--records", folder,
                   "--model", "krill", "--worker", engine.address]
        with process(command, 1, f"http://127.0.0.1:{SLUICE}/ready") as pid:
            rows = run_load(options, [f"sluice={SLUICE},{pid}"],
                            ["--connections", 32, "--model", "krill", "--max-tokens", 1, "--warm-ms", 6000,
                             "--measure-ms", 2000, "--rounds", 1])["sluice"]
    cost = rows[0]["cpu_us"] / max(rows[0]["requests"], 1)
    return show("native, 4 KB prompt", "CPU us/request", "-", cost, cost, 400)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="scenarios whose name has this word")
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--tools", default="build/bench")
    options = parser.parse_args()
    options.nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if not options.nginx:
        print("nginx is not installed, so there is nothing to compare with\n")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    print(f"{'':<34}{'measure':>20}{'nginx':>10}{'sluice':>10}{'value':>9}{'bar':>9}")
    good = True
    with process([f"{options.tools}/gateway_upstream", *map(str, ENGINES)], 0,
                 f"http://127.0.0.1:{ENGINES[0]}/v1/models"):
        for scenario, flags, measures in SCENARIOS:
            if options.only in scenario:
                good &= compare(options, scenario, flags, measures)
    if options.only in "native, 4 KB prompt":
        good &= native(options)
    if options.check and not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
