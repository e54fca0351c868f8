"""The ``onecopy`` command that comes with the wheel."""

import shutil
import signal
import subprocess
import sys
import sysconfig

import pytest


@pytest.mark.parametrize("form", ["script", "module"])
def test_the_command_runs(form):
    script = shutil.which("onecopy", path=sysconfig.get_path("scripts"))
    assert script is not None
    command = [script] if form == "script" else [sys.executable, "-W", "ignore", "-m", "onecopy"]
    done = subprocess.run([*command, "--version"], capture_output=True, check=False)
    assert done.returncode == 0
    done = subprocess.run([*command, "no-such-command"], capture_output=True, check=False)
    assert done.returncode == 2


def test_ctrl_c_ends_the_command_with_130():
    code = (
        "import sys, threading, onecopy.__main__ as main, _thread\n"
        "def slow(args):\n"
        "    print('running', flush=True)\n"
        "    threading.Event().wait()\n"
        "main.run_command = slow\n"
        "sys.exit(main.main())\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
