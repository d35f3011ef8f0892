#!/usr/bin/env bash
# Cross-compiles the exact folders for AArch64 and runs their tests under qemu: the NEON kernels
# against their specification, and the committed digests.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'neon: %s\n' "$*" >&2; }

list() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' deploy/debian-packages-neon.txt; }

# Cross tools, from apt where they are missing and this is root.
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    mapfile -t tools < <(list | grep -v ':')
    if [[ $(id -u) != 0 ]]; then
        say "skipped: as root run apt-get install ${tools[*]}"
        exit 0
    fi
    say "installing ${tools[*]}"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y \
        --no-install-recommends "${tools[@]}" >/dev/null
fi

# Libraries, unpacked and not installed.
packages=build-neon/packages
if ! cmp -s deploy/debian-packages-neon.txt "$packages/list"; then
    if ! apt-cache show libfmt-dev:arm64 >/dev/null 2>&1; then
        if [[ $(id -u) != 0 ]]; then
            say "skipped: as root run dpkg --add-architecture arm64; apt-get update"
            exit 0
        fi
        dpkg --add-architecture arm64
        apt-get -qq update
    fi
    mapfile -t libraries < <(list | grep ':')
    say "unpacking ${#libraries[@]} packages into $packages"
    rm -rf "$packages"
    mkdir -p "$packages/archives"
    (cd "$packages/archives" && apt-get -qq download "${libraries[@]/%:all/}" 2>/dev/null)
    for archive in "$packages"/archives/*.deb; do dpkg -x "$archive" "$packages"; done
    cp deploy/debian-packages-neon.txt "$packages/list"
fi

tools/build.sh neon tensor_test checkpoint_test engine_test
# All of tensor/ and checkpoint/; of the engine, which takes long under emulation, the digests.
tools/ctest.sh build-neon -R '^((Targets.)?Kernel|Half|SelfTest|Transcendental|FloatEnv|Fingerprint|Gguf|Hyper|Mapped|LogitsDigest)'
