#!/usr/bin/env bash
# Runs parts of the tests (rust, python, real, copies), each from scripts/parts/, stops at the first
# step that fails, and ends with one line: how many passed, how many failed.
set -euo pipefail
. "$(dirname "$0")/tools.sh"
cd "$root"

logs=$root/target/test-logs
results=$logs/results.tsv
rm -rf "$logs"
mkdir -p "$logs"
: >"$results"
part=

# step KIND NAME COMMAND...: KIND says how the outcome is counted: check (one), or by the closing
# lines of cargo or pytest.
step() {
    local kind=$1 name=$2 log status=0 began=$SECONDS
    shift 2
    log=$logs/$(printf '%02d' "$(wc -l <"$results")").log
    printf '\n=== %s: %s\n' "$part" "$name"
    "$@" </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    printf '%s\t%s\t%s\t%s\t%s\n' "$kind" "$status" "$log" "$((SECONDS - began))" "$part: $name" >>"$results"
    [ "$status" -eq 0 ] || exit "$status"
}

finish() {
    local status=$?
    "$python" scripts/count_tests.py "$results" || status=1
    [ "$status" -eq 0 ] || say "this failed in: make test-$part"
    exit "$status"
}

need git "apt-get install git"
need_rust
scripts/setup.sh build
trap finish EXIT
for part in "$@"; do
    . "scripts/parts/$part.sh"
done
