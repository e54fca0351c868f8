"""Counts what a loader gives, and what it took from its first batch asked for to its last."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

torch.set_num_threads(1)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(batches: Iterable[Any]) -> None:
    """Take every batch, add up the labels, and print one JSON object."""
    wall, cpu = time.monotonic(), cpu_seconds()
    samples = labels = 0
    for values, numbers in batches:
        samples += len(values)
        labels += int(numbers.sum())
    answer = {
        "samples": samples,
        "labels": labels,
        "seconds": time.monotonic() - wall,
        "cpu_seconds": cpu_seconds() - cpu,
    }
    print(json.dumps(answer))
