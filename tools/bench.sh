#!/usr/bin/env bash
# Every benchmark, each beside its peer or its limit in the same run. Let nothing else run.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh release sluice gateway_upstream gateway_load routing ssd kv_index writev_server value_reader
python3 bench/engine.py
python3 bench/server.py
python3 bench/mixed.py
python3 bench/bandwidth.py
python3 bench/gateway.py
python3 bench/busy.py
build/bench/routing
build/bench/kv_index
python3 bench/ssd.py
python3 bench/kvnode.py
python3 bench/cache_ttft.py
