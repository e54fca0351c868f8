"""Measure what onecopy claims, on this machine: make bench.

Writes bench/runs/DATE-HOST/ with raw.jsonl (every single run), machine.json (where) and summary.md
(the figures, and whether each claim holds). It ends with 0 whatever the figures are: times are
reported, not tested.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from scenarios import (
    buffer_cpu,
    buffer_cpu_tls,
    bytes_beside,
    connections,
    epoch_order,
    first_batch,
    index,
    order_plan,
    peak_memory,
    resume,
    rivals,
    sync_beside,
    tar_parsing,
)

from measuring import CLIENT_CORE, ONECOPY, ROOT, SERVER_CORE

SCENARIOS: dict[str, Any] = {
    "buffer_cpu": buffer_cpu,
    "buffer_cpu_tls": buffer_cpu_tls,
    "bytes_beside": bytes_beside,
    "peak_memory": peak_memory,
    "first_batch": first_batch,
    "tar_parsing": tar_parsing,
    "connections": connections,
    "rivals": rivals,
    "order_plan": order_plan,
    "resume": resume,
    "index": index,
    "epoch_order": epoch_order,
    **sync_beside.CASES,
}
RUNS_MIN = 5


def printed(*command: str | Path) -> str:
    """Return what a command prints, or nothing if it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def from_file(path: str, pattern: str) -> str:
    """Return the first match of a pattern in a file of the kernel."""
    found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    return found[1].strip() if found else "unknown"


def machine() -> dict[str, Any]:
    """Describe where and of what this is measured."""
    return {
        "processor": from_file("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_kib": int(from_file("/proc/meminfo", r"^MemTotal:\s*(\d+)")),
        "kernel": platform.release(),
        "system": from_file("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "python": platform.python_version(),
        "rustc": printed("rustc", "--version"),
        "onecopy": printed(ONECOPY, "--version"),
        "commit": printed("git", "rev-parse", "HEAD"),
        "is_clean": not printed("git", "status", "--porcelain"),
        "server_core": SERVER_CORE,
        "client_core": CLIENT_CORE,
        "load_before": os.getloadavg(),
        "transparent_hugepages": Path("/sys/kernel/mm/transparent_hugepage/enabled")
        .read_text()
        .strip(),
    }


def host_kind(facts: dict[str, Any]) -> str:
    """Name the kind of machine, such as 2-core-amd-epyc; never its own name."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"\(.*?\)", "", facts["processor"].lower()))
    return "-".join([f"{facts['cores']}-core", *words[:2]])


def measure(name: str, runs: int, raw: Path) -> list[str]:
    """Run one scenario; return its part of the summary."""
    scenario = SCENARIOS[name]
    print(f"{scenario.TITLE} ...", file=sys.stderr)
    rows = []
    with raw.open("a") as out:
        for row in scenario.measure(runs):
            rows.append(row)
            line = json.dumps({"scenario": name, **row})
            # Where it was run says nothing, and other machines have it elsewhere.
            out.write(line.replace(f"{ROOT}/", "") + "\n")
            out.flush()
    verdict = scenario.judge(rows)
    held = "holds" if verdict.holds else "does not hold"
    lines = [f"## {scenario.TITLE}", "", f"Claim: {scenario.LIMIT}."]
    return [*lines, f"Measured: {verdict.figure}; it {held}.", "", *verdict.table, ""]


def main() -> int:
    """Measure, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS_MIN, help="runs of each client (5)")
    parser.add_argument("--only", choices=SCENARIOS, nargs="+", default=list(SCENARIOS))
    parser.add_argument("--host-kind", help="how to name this kind of machine")
    parser.add_argument("--out", type=Path, help="folder for the results")
    options = parser.parse_args()

    facts = machine()
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    kind = options.host_kind or host_kind(facts)
    out: Path = options.out or ROOT / "bench" / "runs" / f"{day}-{kind}"
    out.mkdir(parents=True, exist_ok=True)
    raw = out / "raw.jsonl"
    raw.unlink(missing_ok=True)
    (out / "machine.json").write_text(json.dumps(facts, indent=1) + "\n")

    summary = [f"# {day}, {facts['processor']}, {facts['cores']} cores", ""]
    summary += [f"{facts['onecopy']}, {facts['system']}, Linux {facts['kernel']}."]
    summary += [f"Server on core {SERVER_CORE}, client on core {CLIENT_CORE}, over loopback."]
    summary += [f"Medians of {options.runs} runs in turns; ratios are medians over the turns."]
    summary += ["Compare figures of one run only.", ""]
    if SERVER_CORE == CLIENT_CORE:
        summary += ["Only one core was there: server and client got in each other's way.", ""]
    for name in options.only:
        summary += measure(name, options.runs, raw)
        (out / "summary.md").write_text("\n".join(summary))
    print("\n".join(summary))
    print(f"written to {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
