"""What one process does with data in an order: `ordering.py plan|split|state|first|epoch JSON`.

JSON names urls, what they are opened with, the capacity of the shuffle, and what else is asked for.
What is printed leaves out the start of Python and its imports.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import onecopy

BATCH = 64


def loader_of(asked: dict[str, Any]) -> onecopy.Loader:
    """Open what is asked for, without torch: its imports are no part of any question here."""
    loader = onecopy.open(asked["urls"], as_="numpy", **asked["opened"])
    if asked.get("shuffle"):
        loader = loader.shuffle(asked["shuffle"])
    if asked.get("fields"):
        if not asked.get("is_raw"):
            loader = loader.decode()
        loader = loader.to_tuple(*asked["fields"])
    return loader.batch(BATCH)


def resident(name: str) -> int:
    """Return VmRSS, or VmHWM: the most that it was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the kernel tells no {name}")


def plan(asked: dict[str, Any]) -> dict[str, Any]:
    """Say what a run would be, and how large its state is."""
    loader = loader_of(asked)
    # What imports took for a moment is not the plan's.
    Path("/proc/self/clear_refs").write_text("5")
    before, began = resident("VmRSS"), time.monotonic()
    planned = loader.plan()
    seconds = time.monotonic() - began
    answer = {
        "seconds": seconds,
        "grown_bytes": resident("VmHWM") - before,
        "samples": planned.samples,
        "steps": planned.steps,
        "lanes_here": planned.lanes_here,
    }
    if planned.steps is not None:
        running = iter(loader)
        state = loader.state_dict()
        running.close()
        # As behind the last step but one, where its numbers are longest.
        state["position"] = str((planned.steps - 1) * planned.global_batch)
        loader.load_state_dict(state)
        answer["state_bytes"] = len(json.dumps(loader.state_dict()))
    return answer


def split(asked: dict[str, Any]) -> dict[str, Any]:
    """Say how much of planning is looking up what is there, and how much is the order.

    By what the package itself uses for `loader[i]`; for information, so nothing is claimed of it.
    """
    from onecopy import _onecopy  # noqa: PLC0415 - only here

    settings = loader_of(asked)._chain_of(0, None).divided()[0]  # noqa: SLF001 - see above
    began = time.monotonic()
    catalog = _onecopy.Catalog(settings)
    looked_up = time.monotonic()
    _onecopy.plan(settings, catalog)
    first = time.monotonic()
    # By now it is known where the samples of the shards begin that lanes share.
    _onecopy.plan(settings, catalog)
    answer = {"look_up_seconds": looked_up - began, "order_seconds": first - looked_up}
    return {**answer, "order_again_seconds": time.monotonic() - first}


def first(asked: dict[str, Any]) -> dict[str, Any]:
    """Take the first batch, from the beginning or from a state."""
    loader = loader_of(asked)
    if asked.get("state"):
        loader.load_state_dict(asked["state"])
    began = time.monotonic()
    running = iter(loader)
    batch = next(running)
    seconds = time.monotonic() - began
    report = loader.ledger.to_dict()
    running.close()
    return {
        "seconds": seconds,
        "samples": len(batch[0]),
        "received_bytes": moved(report, "recv"),
        "held_bytes": moved(report, "hold"),
        "notes": report["notes"],
    }


def state(asked: dict[str, Any]) -> dict[str, Any]:
    """Go so many steps, and say where that is."""
    loader = loader_of(asked)
    running = iter(loader)
    for _ in range(asked["steps"]):
        next(running)
    there = loader.state_dict()
    running.close()
    return {"state": there, "state_bytes": len(json.dumps(there))}


def epoch(asked: dict[str, Any]) -> dict[str, Any]:
    """Take every batch, and write a state behind each where that is asked for."""
    loader = loader_of(asked)
    is_stating = asked.get("is_stating", False)
    samples = states = 0
    cpu, began = os.times(), time.monotonic()
    for (values,) in loader:
        samples += len(values)
        if is_stating:
            states += len(json.dumps(loader.state_dict()))
    seconds, now = time.monotonic() - began, os.times()
    report = loader.ledger.to_dict()
    hops = {hop["hop"]: hop["bytes"] for hop in report["hops"]}
    return {
        "samples": samples,
        "states_bytes": states,
        "seconds": seconds,
        "cpu_seconds": now.user + now.system - cpu.user - cpu.system,
        "hops": hops,
        "calls": {hop["hop"]: hop["calls"] for hop in report["hops"]},
        "network": report["network"],
        "notes": report["notes"],
    }


def moved(report: dict[str, Any], name: str) -> int:
    """Return the bytes of a hop, by the ledger."""
    return sum(hop["bytes"] for hop in report["hops"] if hop["hop"] == name)


QUESTIONS = {one.__name__: one for one in (plan, split, first, state, epoch)}

if __name__ == "__main__":
    print(json.dumps(QUESTIONS[sys.argv[1]](json.loads(sys.argv[2]))))
