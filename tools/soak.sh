#!/usr/bin/env bash
# tools/soak.sh: what takes too long for every day. Let nothing else run.
#   SLUICE_AA_REQUESTS       requests to the A/A pair (10000)
#   SLUICE_KILL_SCHEDULES    storms of kills over split requests (1000)
#   SLUICE_OVERLOAD_SECONDS  how long four times the load is sent (60)
#   SLUICE_CANCEL_ROUNDS     how often 90 % of the work in flight is cancelled (5)
#   SLUICE_TIMING_ROUNDS     prompts of one tenant that another one times (300)
#   SLUICE_SSD_KILLS         ends of a process that writes to an SSD tier (200)
#   SLUICE_SSD_PUTS          values put into an SSD tier of bounded size (10000000)
#   SLUICE_KV_CHURN          blocks that come and go in the tier in memory (10000000)
#   SLUICE_NODE_PUTS         values that go through a cache node's memory and SSD (10000000)
#   VLLM_PYTHON              a python that has vLLM, see tests/soak/vllm_server.mjs
set -euo pipefail
cd "$(dirname "$0")/.."
tools/bootstrap.sh test
tools/build.sh release sluice

export SLUICE_BIN=$PWD/build/sluice SLUICE_E2E_PATIENCE=10
export SLUICE_AA_REQUESTS=${SLUICE_AA_REQUESTS:-10000}
export SLUICE_KILL_SCHEDULES=${SLUICE_KILL_SCHEDULES:-1000}
failed=()
part() { "$@" || failed+=("$*"); }
# What is not installed is skipped, with a line that says so.
soak() { tests/e2e/run.sh "$1" || [[ $? == 77 ]]; }
part soak tests/e2e/equal_pair_test.mjs
part soak tests/soak/overload_test.mjs
part soak tests/soak/cancel_test.mjs
part soak tests/e2e/kill_storm_test.mjs
part soak tests/soak/kvnode_test.mjs
part soak tests/soak/timing_test.mjs
part soak tests/soak/vllm_test.mjs

tools/build.sh release kv_test kvnode_test
export SLUICE_SSD_KILLS=${SLUICE_SSD_KILLS:-200} SLUICE_SSD_PUTS=${SLUICE_SSD_PUTS:-10000000}
export SLUICE_KV_CHURN=${SLUICE_KV_CHURN:-10000000}
export SLUICE_NODE_PUTS=${SLUICE_NODE_PUTS:-10000000}
part build/tests/kv_test \
    --gtest_filter='SsdCrashTest.*:SsdBoundsTest.MemoryIsFlat*:DramTierTest.MemoryStaysFlat*'
part build/tests/kvnode_test --gtest_filter='NodeBoundsTest.MemoryIsFlat*'

# All parts run, whatever became of the first ones.
for name in "${failed[@]}"; do echo "FAILED: $name"; done
exit $((${#failed[@]} > 0))
