# Sourced by test.sh.
tar --version | grep -q 'GNU tar' || stop "GNU tar not found" "apt-get install tar"
need openssl "apt-get install openssl"
PATH=$PATH:/usr/sbin need nginx "apt-get install nginx-light (its service need not run)"

step check "set-up" scripts/setup.sh test
step check "build the command" scripts/build.sh command
step check "install the package" scripts/build.sh package
step pytest "real photos on real servers, against webdataset" "$python" -m pytest tests/integration
