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


def test_ctrl_c_ends_the_command_with_130(silent_url):
    command = [sys.executable, "-W", "ignore", "-m", "onecopy", "cat", silent_url.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        silent_url.await_request()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130


def test_ctrl_c_before_the_command_listens_gives_130_too():
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
