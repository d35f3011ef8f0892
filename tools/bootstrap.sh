#!/usr/bin/env bash
# Installs what is missing for `build`, `test` or `check`, and nothing else. When all is there it
# only asks dpkg once and starts neither apt nor npm.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}

say() { printf 'bootstrap: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

package_lists() {
    echo deploy/debian-packages.txt
    if [[ $purpose == check ]]; then echo deploy/debian-packages-check.txt; fi
}

wanted_packages() {
    # shellcheck disable=SC2046
    sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' $(package_lists)
    # A node that is already there, from wherever, is good enough.
    if [[ $purpose != build && -n $(npm_folders) ]]; then
        command -v node >/dev/null || echo nodejs
        command -v npm >/dev/null || echo npm
    fi
}

missing_packages() {
    local installed
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null |
        awk '$2 == "installed" { print $1 }' | sort -u)
    comm -23 <(wanted_packages | sort -u) <(printf '%s\n' "$installed")
}

# Prints the prefix that runs a command as root: nothing for root, else sudo.
root_prefix() {
    if [[ $(id -u) == 0 ]]; then return; fi
    command -v sudo >/dev/null || return 1
    if [[ -t 0 ]]; then
        echo sudo
    else
        sudo -n true 2>/dev/null || return 1  # Nobody is there to type a password.
        echo sudo -n
    fi
}

install_packages() {
    local packages=("$@") prefix
    prefix=$(root_prefix) || die "missing packages; as root run: apt-get install ${packages[*]}"
    say "installing ${#packages[@]} package(s) with apt-get: ${packages[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! { $prefix "${apt[@]}" update &&
        $prefix "${apt[@]}" install --no-install-recommends -y "${packages[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "apt-get failed; everything it said is in $log"
    fi
    rm -f "$log"
}

npm_folders() {
    local folder
    for folder in tests/oracle tests/e2e; do
        if [[ -f $folder/package-lock.json ]]; then echo "$folder"; fi
    done
}

# `npm ci` starts from nothing, so it runs only when the lock file is not the one it last ran for.
install_npm_modules() {
    local folder=$1 stamp=$1/node_modules/.installed-lock
    if cmp -s "$folder/package-lock.json" "$stamp"; then return; fi
    say "npm ci in $folder"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
        die "npm ci failed in $folder"
    mkdir -p "$folder/node_modules"
    cp "$folder/package-lock.json" "$stamp"
}

# Not everybody reaches a package index for Python: without the server its tests are skipped.
install_llama_server() {
    local wish=tests/e2e/requirements-llama.txt venv=tests/e2e/.venv-llama
    if cmp -s "$wish" "$venv/.installed"; then return; fi
    say "pip install in $venv"
    rm -rf "$venv"
    if python3 -m venv "$venv" &&
        "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --only-binary :all: \
            --requirement "$wish" >&2; then
        cp "$wish" "$venv/.installed"
    else
        rm -rf "$venv"
        say "llama.cpp's server can't be installed; the tests that need it are skipped"
    fi
}

# Debian's package would start a daemon, so only its program is taken. Without it its test is skipped.
install_etcd() {
    local folder=tests/e2e/.etcd
    if command -v etcd >/dev/null || [[ -x $folder/usr/bin/etcd ]]; then return; fi
    say "etcd (Debian's etcd-server) in $folder"
    rm -rf "$folder"
    mkdir -p "$folder"
    if (cd "$folder" && apt-get -qq -o Acquire::Retries=3 download etcd-server && dpkg -x ./*.deb .) 2>/dev/null; then
        rm -f "$folder"/*.deb
    else
        rm -rf "$folder"
        say "etcd can't be had; the test that needs it is skipped"
    fi
}

case $purpose in build | test | check) ;; *) die "usage: tools/bootstrap.sh [build|test|check]" ;; esac
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    die "this is not Debian; install the equivalents of deploy/debian-packages.txt, then use cmake"

mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
if [[ $purpose != build ]]; then
    for folder in $(npm_folders); do install_npm_modules "$folder"; done
    install_llama_server
    install_etcd
fi
