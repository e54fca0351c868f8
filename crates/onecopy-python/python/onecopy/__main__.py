"""The ``onecopy`` command, as installed with the wheel and as ``python -m onecopy``."""

import sys

from onecopy._onecopy import run_command

INTERRUPTED = 130
"""128 + SIGINT: what a shell gives for a command that Ctrl-C ended."""


def main() -> int:
    """Run the command with the arguments of this process.

    Returns
    -------
    int
        0 done and true, 1 ran but the answer is no, 2 could not run, 130 interrupted.
    """
    try:
        return run_command(["onecopy", *sys.argv[1:]])
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
