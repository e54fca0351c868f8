# Sourced by test.sh.
package=crates/onecopy-python

step check "set-up" scripts/setup.sh test
step check "build the testkit" scripts/build.sh testkit
step check "install the package" scripts/build.sh package
step check "ruff: lints" ruff check .
step check "ruff: format" ruff format --check .
step check "mypy: the package" env -C "$package" mypy --strict
step check "mypy: scripts and bench" mypy --strict scripts bench
step check "stubs agree with the module" "$python" -m mypy.stubtest onecopy._onecopy
# pytest and mypy take the package's own settings, from its pyproject.toml.
step pytest "tests" "$python" -m pytest --timeout=180 "$package/tests"
