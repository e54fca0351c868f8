# Sourced by test.sh.
step check "set-up" scripts/setup.sh test
step check "build the command and the testkit" scripts/build.sh command testkit
step check "build the measuring programs" scripts/build.sh bench-tools
step pytest "the measuring programs give known answers" "$python" -m pytest tests/tools
step check "copies per payload byte" "$python" bench/check_copies.py
