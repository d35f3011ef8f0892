#!/usr/bin/env bash
# tools/make_reference.sh [PROGRAM [FOLDER]]: writes one page a command from `sluice ... --help`.
# tests/app/reference_test.cc compares the pages in docs/reference/ with a fresh run.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$root/build/sluice}
folder=${2:-$root/docs/reference}

# The names under "Subcommands:" of a help text.
subcommands() {
    "$program" "$@" --help | awk '/^Subcommands:/ { list = 1; next } /^[^ ]/ { list = 0 }
                                  list && NF { print $1 }'
}

help_block() {
    printf '```text\n'
    # Without trailing spaces and with single empty lines, none of them first or last.
    "$program" "$@" --help | awk '{ sub(/[ \t]+$/, "") }
                                  !NF { gap = started; next }
                                  { if (gap) print ""; print; gap = 0; started = 1 }'
    printf '```\n'
}

# A command, and below it its own, however deep.
page() {
    local heading=$1 nested
    shift
    printf '%s sluice %s\n\n' "$heading" "$*"
    help_block "$@"
    for nested in $(subcommands "$@"); do
        printf '\n'
        page "#$heading" "$@" "$nested"
    done
}

mkdir -p "$folder"
rm -f "$folder"/*.md
{
    printf '# Reference of the command line\n\nWritten by `make reference` from the program itself; do not edit.\n\n'
    help_block
    printf '\n'
    for name in $(subcommands); do printf -- '- [sluice %s](%s.md)\n' "$name" "$name"; done
} >"$folder/README.md"
for name in $(subcommands); do page "#" "$name" >"$folder/$name.md"; done
