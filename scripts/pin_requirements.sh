#!/usr/bin/env bash
# Writes requirements/test.txt: requirements/test.in with every version pinned, also of what those
# packages depend on. Run it after changing test.in or build.txt, and commit both.
set -euo pipefail
. "$(dirname "$0")/tools.sh"
cd "$root"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$(find_python)" -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet -r requirements/test.in
{
    echo "# Made by scripts/pin_requirements.sh from test.in: change that one."
    "$fresh/bin/python" -m pip freeze
} >requirements/test.txt
