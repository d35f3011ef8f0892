#!/usr/bin/env bash
# clang-tidy over src/, or over the files given. It reads the clang build's compile commands, because
# GCC's own flags (precompiled headers, warnings clang doesn't know) would be errors there.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -f build-fuzz/compile_commands.json ]]; then
    cmake --preset fuzz >/dev/null
else
    cmake build-fuzz >/dev/null  # Picks up new files.
fi
files=("$@")
if ((${#files[@]} == 0)); then files=("^$PWD/src/"); fi
# What it says of itself (its command lines, counts of suppressed warnings) is dropped.
set +e
run-clang-tidy-19 -quiet -j "${JOBS:-$(nproc)}" -p build-fuzz "${files[@]}" 2>/dev/null |
    grep -v -E '^(\[[ 0-9/]+\]\[|clang-tidy-19 |[0-9]+ warnings|Enabled checks:|    (bugprone|performance|clang)-|$)'
status=${PIPESTATUS[0]}
if ((status == 0)); then echo "clang-tidy: clean"; fi
exit "$status"
