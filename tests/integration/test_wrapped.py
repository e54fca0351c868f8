"""Loaders that others drive, on two ranks: each sample once, and the very same steps afterwards.

The scripts in wrapped/ train with Lightning, Accelerate, StatefulDataLoader and Ray Train, in
processes that torchrun or Ray starts and that wait for each other by gloo.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onecopy
import pytest

from servers import ONECOPY, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "wrapped"
RAY = ROOT / "target/ray/bin/python"
COUNTS = (40, 31, 0, 29)
SAMPLES = sum(COUNTS)
RANKS, GLOBAL_BATCH, EPOCHS = 2, 16, 2
SAVED_AFTER = 9
"""Steps: in the midst of the second epoch."""

Steps = list[tuple[int, list[int]]]
"""Of one rank: the epoch of each step, and the numbers of the samples that it saw."""


@dataclass(frozen=True)
class Data:
    """Numbered samples on a server."""

    endpoint: str
    urls = "s3://numbers/{0..3}.tar"
    index = "s3://numbers/index.json"

    def run(self, script: str, folder: Path, *options: object, python: str = "") -> list[Steps]:
        """Run a script on all ranks; return what each of them saw."""
        launcher = ("-m", "torch.distributed.run", "--nproc-per-node", str(RANKS))
        launcher += ("--master-port", "0", "--standalone")
        command = [python or sys.executable, *(() if python else launcher), SCRIPTS / script]
        command += [self.urls, "--index", self.index, "--endpoint-url", self.endpoint]
        command += ["--folder", folder, "--epochs", EPOCHS, *options]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        done = subprocess.run(
            [str(word) for word in command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        return read(folder)

    def expected(self, tail: Any = "pad") -> list[Steps]:
        """Return what two ranks see that nobody else drives, in this process."""
        ranks = []
        for rank in range(RANKS):
            loader = onecopy.open(
                self.urls,
                index=self.index,
                endpoint_url=self.endpoint,
                rank=rank,
                world_size=RANKS,
                as_="numpy",
            )
            loader = loader.shuffle(200, seed=3).decode().to_tuple("cls")
            loader = loader.batch(GLOBAL_BATCH // RANKS, tail=tail)
            epochs = [(epoch, list(loader)) for epoch in range(EPOCHS)]
            ranks.append([(at, labels.tolist()) for at, steps in epochs for (labels,) in steps])
        return ranks


def read(folder: Path) -> list[Steps]:
    """Return what each rank has noted in ``folder``."""
    ranks = []
    for rank in range(RANKS):
        lines = map(json.loads, (folder / f"rank-{rank}").read_text().splitlines())
        ranks.append([(line["epoch"], line["labels"]) for line in lines])
    return ranks


def check_epochs(ranks: list[Steps], tail: str = "pad") -> None:
    """Check that all ranks made as many steps, and that each epoch holds what the tail says."""
    assert len({len(steps) for steps in ranks}) == 1
    seen: list[list[int]] = []
    for epoch in range(EPOCHS):
        steps = [[labels for at, labels in steps if at == epoch] for steps in ranks]
        assert len({len(of_rank) for of_rank in steps}) == 1
        seen.append([label for of_rank in steps for labels in of_rank for label in labels])
        given = {"pad": 112, "drop": 96, "short": SAMPLES}[tail]
        assert len(seen[-1]) == given
        assert len(set(seen[-1])) == min(given, SAMPLES)
    assert seen[0] != seen[1], "both epochs had one order"


def rest(ranks: list[Steps], after: int = SAVED_AFTER) -> list[Steps]:
    """Return what follows so many steps."""
    return [steps[after:] for steps in ranks]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    """Serve shards of different lengths, and their index."""
    root = tmp_path_factory.mktemp("served")
    (root / "numbers").mkdir()
    for at in range(len(COUNTS)):
        with tarfile.open(root / f"numbers/{at}.tar", "w") as tar:
            for number in range(sum(COUNTS[:at]), sum(COUNTS[: at + 1])):
                member = tarfile.TarInfo(f"{number:05}.cls")
                member.size = len(str(number))
                tar.addfile(member, io.BytesIO(b"%d" % number))
    with serving(root) as url:
        index = [ONECOPY, "index", Data.urls, "--quiet", "--endpoint-url", url]
        subprocess.run(index, check=True, timeout=60)
        yield Data(url)


@pytest.mark.timeout(600)
def test_lightning_goes_on_in_mid_epoch_and_at_the_end_of_one(data: Data, tmp_path: Path) -> None:
    """Hold each rank's steps against those that nobody drove, also behind two checkpoints."""
    whole = data.run("run_lightning.py", tmp_path / "whole", "--save-after", 1)
    check_epochs(whole)
    assert whole == data.expected()
    for stop in (SAVED_AFTER, len(whole[0]) // EPOCHS):
        saved = tmp_path / f"whole/step={stop}.ckpt"
        again = data.run("run_lightning.py", tmp_path / f"again-{stop}", "--resume", saved)
        assert again == rest(whole, stop)


@pytest.mark.timeout(600)
def test_accelerate_keeps_the_place_of_a_loader_that_is_not_prepared(
    data: Data, tmp_path: Path
) -> None:
    """Hold each rank's steps against those that nobody drove, also behind ``load_state``."""
    options = ("--tail", "drop", "--save-after", SAVED_AFTER)
    whole = data.run("run_accelerate.py", tmp_path / "whole", *options)
    check_epochs(whole, "drop")
    assert whole == data.expected("drop")
    options = ("--tail", "drop", "--resume", tmp_path / "whole/saved")
    assert data.run("run_accelerate.py", tmp_path / "again", *options) == rest(whole)


@pytest.mark.timeout(600)
def test_what_accelerate_would_divide_twice_is_refused(data: Data, tmp_path: Path) -> None:
    """Have it prepare a DataLoader: of ranks that divide, and of one that reads all."""
    ranks = data.run("run_accelerate.py", tmp_path, "--tail", "drop", "--way", "prepared")
    check_epochs(ranks, "drop")
    for rank in range(RANKS):
        said = (tmp_path / f"said-{rank}").read_text().splitlines()
        assert len(said) == 4
        assert all("only one of 2 samples" in line and "prepare()" in line for line in said)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_dataloader_goes_on_with_the_very_same_batches(
    data: Data, tmp_path: Path, workers: int
) -> None:
    """Hold the steps behind a state against those of the run that saved it."""
    options = ("--tail", "short", "--workers", workers)
    script = "run_stateful.py"
    whole = data.run(script, tmp_path / "whole", *options, "--save-after", SAVED_AFTER)
    check_epochs(whole, "short")
    if workers == 0:
        assert whole == data.expected("short")
    again = data.run(script, tmp_path / "again", *options, "--resume", tmp_path / "whole")
    assert again == rest(whole)


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not RAY.exists(), reason="Ray Train takes 500 MB: scripts/setup.sh ray brings it"
)
def test_ray_train_starts_workers_anew_that_go_on_behind_the_checkpoint(
    data: Data, tmp_path: Path
) -> None:
    """Hold what they saw before and afterwards against steps that nobody drove."""
    options = ("--save-after", SAVED_AFTER)
    before = data.run("run_ray.py", tmp_path, *options, python=str(RAY))
    after = read(tmp_path / "rest")
    expected = data.expected()
    assert before == [steps[: len(before[0])] for steps in expected]
    assert len(before[0]) > SAVED_AFTER
    assert after == rest(expected)
    check_epochs([a[:SAVED_AFTER] + b for a, b in zip(before, after, strict=True)])
