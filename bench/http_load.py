"""Streamed requests to an OpenAI-compatible server, timed from the client's side.

Used by bench/server.py and bench/mixed.py. The client shares the machine with the server, so it does
as little as it can: one thread, and JSON is read only where a number stands in it.
"""
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse


class Stream(asyncio.Protocol):
    """One request and what came back. `done` is set when the server closed the connection."""

    def __init__(self, request):
        self.request = request
        self.done = asyncio.get_running_loop().create_future()
        self.started = time.perf_counter()
        self.first = None  # Seconds until the first token, None before it.
        self.last = 0.0
        self.gaps = []
        self.tokens = 0
        self.error = None
        self.head = b""
        self.rest = b""

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data):
        now = time.perf_counter()
        if len(self.head) < 400:
            self.head += data[:400]
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                self.on_event(line[6:], now)

    def on_event(self, event, now):
        # The first token, the usage and errors are read; everything between is a token's event.
        if self.first is None or b'"usage":{' in event or b'"error"' in event:
            value = json.loads(event)
            if "error" in value:
                self.error = value["error"]
            if value.get("usage"):
                self.tokens = value["usage"]["completion_tokens"]
            choices = value.get("choices")
            if not choices or not (choices[0].get("text") or choices[0].get("delta", {}).get("content")):
                return
        if self.first is None:
            self.first = now - self.started
        else:
            self.gaps.append(now - self.last)
        self.last = now

    def connection_lost(self, error):
        if self.first is None and self.error is None:
            self.error = error or self.head.decode(errors="replace")
        if not self.done.done():
            self.done.set_result(self)


def http_request(address, path, body):
    """A request as bytes; the connection ends with the answer."""
    content = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: {address[0]}\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n").encode() + content


async def send(address, request):
    """Opens a connection and sends; await the result's `done`."""
    _, stream = await asyncio.get_running_loop().create_connection(
        lambda: Stream(request), *address)
    return stream


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def address_of(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


class Server:
    """A server process that is ready, ended with the `with` block."""

    def __init__(self, command, is_ready, **arguments):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        **arguments)
        self.address = is_ready(self)
        if self.address is None:
            self.process.kill()
            self.log.seek(0)
            sys.exit(f"{' '.join(command)} did not start:\n{self.log.read()[-2000:].decode()}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_sluice(program, threads, state, *flags):
    """`sluice up` with Krill, on a free port and with a state folder of its own."""
    def is_ready(server):
        for line in server.process.stdout:
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == "ready":
                return address_of(event["url"])
        return None

    return Server([program, "up", "--port", "0", "--threads", str(threads), "--state", state,
                   "--json", *flags], is_ready, env={**os.environ, "SLUICE_LOG": "error"})
