# Sourced by the other scripts: where things are, and how what is missing is said.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python
export PATH=$venv/bin:$PATH
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }
stop() {
    say "error: $1"
    [ $# -lt 2 ] || say "help: $2"
    exit 2
}

# need COMMAND HELP: stops with the command that brings what is missing.
need() { command -v "$1" >/dev/null || stop "$1 not found" "$2"; }

# bring COMMAND PACKAGE: brings a server that tests speak with, where this user may. Without it they are not tried.
# Its service is not started: runlevel 1 keeps Debian from that.
bring() {
    ! (PATH=$PATH:/usr/sbin command -v "$1" >/dev/null) || return 0
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing $2"
        apt-get -qq update >&2 || true
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
            apt-get -qq install -y --no-install-recommends "$2" >&2 && return 0
    fi
    say "$1 is not here, so what is tested with it is not tried: apt-get install $2"
}

need_rust() {
    need cargo "install Rust: curl https://sh.rustup.rs -sSf | sh"
    need cc "install a C compiler: apt-get install gcc libc6-dev"
}

# The first Python that will do. The package itself runs on 3.10 and newer; the pinned tools of this
# tree ask for 3.11.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    stop "no Python 3.11 or newer found" \
        "apt-get install python3 python3-venv, or name one: make PYTHON=/path/to/python3.11 ..."
}
