#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60), as many at a time as there are cores. Seeds come from
# tests/FOLDER/corpus/TARGET where present; what a run finds stays in build-fuzz/corpus/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
if ! compgen -G 'build-fuzz/fuzz/*_fuzz' >/dev/null; then
    echo "no fuzz targets yet"
    exit 0
fi

run_one() {
    local target=$1 name log
    name=$(basename "$target")
    log=build-fuzz/fuzz/$name.log
    local corpora=("build-fuzz/corpus/$name")
    mkdir -p "${corpora[0]}"
    for seeds in tests/*/corpus/"$name"; do
        if [[ -d $seeds ]]; then corpora+=("$seeds"); fi
    done
    if "$target" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build-fuzz/fuzz/$name-" "${corpora[@]}" >"$log" 2>&1; then
        echo "fuzz $name: $(awk '/number_of_executed_units/ { print $2 }' "$log") runs, nothing found"
    else
        tail -n 40 "$log" >&2
        echo "fuzz $name: FAILED, see $log" >&2
        return 1
    fi
}
export -f run_one

printf '%s\0' build-fuzz/fuzz/*_fuzz |
    xargs -0 -P "${JOBS:-$(nproc)}" -I{} bash -c 'run_one {} '"$seconds"
