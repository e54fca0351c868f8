# Everything sets itself up: .venv and target/ inside the tree are all that is written.
# Needed beforehand: Rust (cargo), Python 3.11, gcc, git.

.PHONY: help build demo test test-rust test-python test-real test-copies bench clean

help:
	@echo 'make build        the command at target/release/onecopy, the Python package in .venv'
	@echo 'make demo         build the command and stream a made-up dataset through it'
	@echo 'make test         everything below, in this order'
	@echo 'make test-rust    format, lints, docs, bans, tests and doctests of the crates'
	@echo 'make test-python  the package: ruff, mypy, stubtest, pytest'
	@echo 'make test-real    real photos, real S3 servers, against the webdataset package'
	@echo 'make test-copies  the copy counter: user-space copies per payload byte'
	@echo 'make bench        measure on this machine, into bench/runs/ (options: BENCH="--runs 7")'
	@echo 'make clean        remove target/ and .venv'

build:
	@scripts/build.sh command package

demo:
	@scripts/build.sh command
	@target/release/onecopy demo

test:
	@scripts/test.sh rust python real copies

test-rust test-python test-real test-copies: test-%:
	@scripts/test.sh $*

bench:
	@scripts/setup.sh test
	@scripts/setup.sh rivals
	@scripts/build.sh command tar-bench open-bench bench-tools package
	@.venv/bin/python bench/run.py $(BENCH)

clean:
	rm -rf target .venv
