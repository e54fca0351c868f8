# Sourced by test.sh. The crate of the Python module is checked like the others, but tested from
# Python: its test binary would need a shared libpython.
cargo fmt --version >/dev/null 2>&1 || stop "cargo fmt not found" "rustup component add rustfmt"
cargo clippy --version >/dev/null 2>&1 || stop "cargo clippy not found" "rustup component add clippy"
bring openssl openssl # a TLS server for the tests of the record layer
export PYO3_PYTHON=$python

step check "format" cargo fmt --all --check
step check "lints" cargo clippy --locked --workspace --all-targets -- -D warnings
step check "documentation" env RUSTDOCFLAGS="-D warnings" \
    cargo doc --locked --workspace --lib --no-deps
step check "banned calls are refused" "$python" scripts/check_bans.py
if cargo nextest --version >/dev/null 2>&1; then
    step cargo "tests" cargo nextest run --locked --workspace --exclude onecopy-python \
        --no-tests=pass --no-fail-fast
else
    say "cargo-nextest is not installed: using cargo test"
    step cargo "tests" cargo test --locked --workspace --exclude onecopy-python --all-targets \
        --no-fail-fast
fi
step cargo "doctests" cargo test --locked --workspace --exclude onecopy-python --doc
