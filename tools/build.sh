#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures when needed and builds, quietly unless it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
case $preset in
    release) folder=build ;;
    asan-ubsan) folder=build-asan ;;
    *) folder=build-$preset ;;
esac

if [[ ! -f $folder/build.ninja || CMakePresets.json -nt $folder/build.ninja ]]; then
    mkdir -p "$folder"
    echo "configuring $folder ($preset)"
    if ! cmake --preset "$preset" >"$folder/configure.log" 2>&1; then
        cat "$folder/configure.log" >&2
        exit 1
    fi
fi

targets=()
if (($#)); then targets=(--target "$@"); fi
echo "building $folder${*:+: $*}"
exec cmake --build "$folder" -j "${JOBS:-$(nproc)}" "${targets[@]}" -- --quiet
