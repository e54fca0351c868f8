#!/usr/bin/env bash
# Builds what is named, in release form:
#   command      target/release/onecopy, and with it
#   testkit      target/release/onecopy-testkit
#   package      the Python package, installed in .venv
#   tar-bench    target/release/examples/tar_bench
#   open-bench   target/release/examples/open_bench
#   bench-tools  target/bench-tools/: the floor, the copy counter and the program that checks it
set -euo pipefail
. "$(dirname "$0")/tools.sh"
cd "$root"

package() {
    scripts/setup.sh build
    # pip takes the pinned maturin from .venv, and the crates from the same target/ as the command.
    "$python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall \
        ./crates/onecopy-python
    "$python" -c 'import onecopy; print("onecopy", onecopy.__version__, "is in .venv")' >&2
}

for what in "$@"; do
    case $what in
    # Both at once: apart, each would build the shared crates with features of its own.
    command | testkit) need_rust && cargo build --locked --release -p onecopy-cli -p onecopy-testkit ;;
    package) need_rust && package ;;
    tar-bench) need_rust && cargo build --locked --release -p onecopy --example tar_bench ;;
    open-bench) need_rust && cargo build --locked --release -p onecopy --example open_bench ;;
    bench-tools)
        need cc "install a C compiler: apt-get install gcc libc6-dev"
        make --no-print-directory -s -C bench
        ;;
    *) stop "unknown part: $what" "command, testkit, package, tar-bench, open-bench or bench-tools" ;;
    esac
done
