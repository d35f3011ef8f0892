#!/usr/bin/env bash
# tools/folders.sh NAME...: of these folders, prints the test target of each that exists by now.
set -euo pipefail
cd "$(dirname "$0")/.."
for name in "$@"; do
    if grep -q "^sluice_folder($name[ )]" src/CMakeLists.txt && compgen -G "tests/$name/*_test.cc" >/dev/null; then
        echo "${name}_test"
    fi
done
