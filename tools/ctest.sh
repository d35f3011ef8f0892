#!/usr/bin/env bash
# tools/ctest.sh BUILD_FOLDER [CTEST_ARGUMENT...]: runs tests; shows failures and ctest's closing
# lines, and keeps everything in BUILD_FOLDER/ctest.log.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
shift
ctest --test-dir "$folder" --output-on-failure -j "${JOBS:-$(nproc)}" --no-tests=error "$@" |
    tee "$folder/ctest.log" | sed -E '/^ +Start +[0-9]+: /d; /^ *[0-9]+\/[0-9]+ Test .* Passed /d'
