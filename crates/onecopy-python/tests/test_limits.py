"""Machines that give little."""

import subprocess
import sys

# What is imported lazily is there before files become few.
LOADS = """
import os, resource, sys
import numpy
import onecopy
from onecopy._onecopy import run_command

list(onecopy.open(sys.argv[1], as_="numpy").decode().batch(2))
for permitted in range(3, 41):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert status == 0, f"{permitted} files: status {status}"
        continue
    resource.setrlimit(resource.RLIMIT_NOFILE, (permitted, permitted))
    try:
        assert len(list(onecopy.open(sys.argv[1], as_="numpy").decode().batch(2))) == 5
    except onecopy.LimitReachedError as error:
        assert f"may have {permitted} files" in str(error), error
        assert "ulimit -n" in error.help, error
    assert run_command(["onecopy", "ls", "/"]) in {0, 2}
    os._exit(0)
"""


def test_with_any_number_of_files_a_load_works_or_names_the_number_and_the_cure(url):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADS, url],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "panicked" not in ran.stderr
    assert "may have 8 files" in ran.stderr, "the command tells, too"
