"""llama.cpp's HTTP server, out of the wheel xllamacpp, for llama_server.mjs.

usage: llama_server.py GGUF TEMPLATE ALIAS SLOTS CONTEXT_OF_A_SLOT

Takes a free port, says where it listens as a line of JSON, and ends with its standard input.
"""

import json
import sys

import xllamacpp

model, template, alias, slots, context = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = [alias]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = int(slots)
params.n_ctx = int(slots) * int(context)
# Spinning threads of two programs on a busy machine slow both down many times over.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_metrics = True
params.cache_ram_mib = 64  # Else its prompt cache may grow to 8 GiB.
with open(template, encoding="utf-8") as file:
    params.chat_template = file.read()

server = xllamacpp.Server(params)
print(json.dumps({"url": server.listening_address}), flush=True)
sys.stdin.read()
