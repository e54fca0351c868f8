# Sourced by test.sh.
tar --version | grep -q 'GNU tar' || stop "GNU tar not found" "apt-get install tar"
bring openssl openssl
bring nginx nginx-light

step check "set-up" scripts/setup.sh test
# 500 MB for one test: where nobody sits and waits for it.
[ -z "${CI:-}" ] || step check "set-up of Ray Train" scripts/setup.sh ray
step check "build the command and the testkit" scripts/build.sh command testkit
step check "install the package" scripts/build.sh package
step pytest "real photos on real servers, against webdataset" "$python" -m pytest tests/integration
