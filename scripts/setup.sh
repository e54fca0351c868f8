#!/usr/bin/env bash
# Makes .venv, inside the tree, with pinned versions: setup.sh build | test | rivals | ray.
#   build   what building the Python package needs
#   test    that, and what the tests need
#   rivals  target/rivals: the clients that `make bench` puts beside onecopy, on top of .venv
#   ray     target/ray: Ray Train, on top of .venv, for the one test that asks for it
# A stamp per stage, named by a hash of all that goes into it, makes the second run do nothing.
set -euo pipefail
. "$(dirname "$0")/tools.sh"
cd "$root"

stage=${1:?stage: build, test, rivals or ray}
base=$(find_python)

case $stage in
build) inputs=(requirements/build.txt) ;;
test) inputs=(requirements/build.txt requirements/test.txt requirements/test-no-deps.txt scripts/cpu_torch.py) ;;
rivals | ray) inputs=("requirements/$stage.txt") ;;
*) stop "unknown stage: $stage" "build, test, rivals or ray" ;;
esac
case $stage in rivals | ray) venv=$root/target/$stage python=$root/target/$stage/bin/python ;; esac
stamp=$venv/.done-$stage-$({ "$base" --version; echo "$venv"; cat "${inputs[@]}"; } | sha256sum | cut -c1-16)
[ -e "$stamp" ] && "$python" -c '' 2>/dev/null && exit 0

if ! "$python" -m pip --version >/dev/null 2>&1 ||
    [ "$("$python" --version)" != "$("$base" --version)" ]; then
    say "making ${venv#"$root"/} with $("$base" --version)"
    rm -rf "$venv"
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$base cannot make virtual environments" "apt-get install python3-venv"
    "$base" -m venv "$venv"
fi
rm -f "$venv"/.done-"$stage"-*

install=("$python" -m pip install --quiet --retries 10)
if [ "$stage" = build ]; then
    say "installing requirements/build.txt"
    "${install[@]}" -r requirements/build.txt
elif [ "$stage" = rivals ] || [ "$stage" = ray ]; then
    say "installing requirements/$stage.txt"
    "${install[@]}" --no-deps -r "requirements/$stage.txt"
    # What these want of torch, numpy and boto3 is in .venv already; what both have is taken from here.
    site=lib/python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages
    echo "$root/.venv/$site" >"$venv/$site/beside.pth"
else
    say "installing requirements/test.txt (about a minute)"
    need cc "install a C compiler: apt-get install gcc libc6-dev"
    need readelf "apt-get install binutils"
    # One by one in this order: pip would complain of what the second list leaves out on purpose.
    "${install[@]}" -r requirements/test.txt
    "${install[@]}" --no-deps -r requirements/test-no-deps.txt
    "$python" scripts/cpu_torch.py
fi
touch "$stamp"
