#!/usr/bin/env bash
# run.sh FILE: runs one test file with node's own test runner. 77 says "skipped" to ctest.
set -euo pipefail
file=$(realpath "$1")
cd "$(dirname "$0")"

skip() {
    echo "skipped: $*"
    exit 77
}

command -v node >/dev/null || skip "there is no node here; make test installs it"
major=$(node -p 'process.versions.node.split(".")[0]')
((major >= 18)) || skip "node is $(node --version), but these tests need 18 or later"
[[ -d node_modules/openai ]] || skip "no modules in tests/e2e; make test runs npm ci there"
if grep -q llama_server.mjs "$file" && [[ ! -f .venv-llama/.installed ]]; then
    skip "llama.cpp's server is not here; make test installs it where pip reaches a registry"
fi
export PATH=$PATH:$PWD/.etcd/usr/bin
if grep -q etcd_server.mjs "$file" && ! command -v etcd >/dev/null; then
    skip "there is no etcd here; make test installs it where apt reaches a mirror"
fi
if grep -q vllm_server.mjs "$file" && [[ -z ${VLLM_PYTHON:-} ]]; then
    skip "VLLM_PYTHON names no python that has vLLM; tests/soak/vllm_server.mjs says how to install it"
fi

if grep -q redis_cli "$file"; then
    command -v redis-cli >/dev/null || skip "there is no redis-cli here; Debian has it in the package redis-tools"
    [[ -d node_modules/ioredis ]] || skip "no ioredis in tests/e2e; make test runs npm ci there"
fi

exec node --test "$file"
