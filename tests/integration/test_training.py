"""The training script of examples/: real processes, stopped on four ranks, gone on with on two."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from servers import ONECOPY, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/train_imagenet.py"
COUNTS = (40, 31, 0, 29)
GLOBAL_BATCH, EPOCHS, STEPS = 16, 2, 14
STOPPED_AFTER = 9


def write_shard(path: Path, first: int, count: int) -> None:
    """Write pictures of one colour each, numbered through."""
    with tarfile.open(path, "w") as tar:
        for number in range(first, first + count):
            picture = io.BytesIO()
            colour = (number * 2 % 256, number * 3 % 256, number * 5 % 256)
            Image.new("RGB", (48, 40), colour).save(picture, "jpeg")
            for field, content in (("jpg", picture.getvalue()), ("cls", b"%d" % (number % 10))):
                member = tarfile.TarInfo(f"{number:05}.{field}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the bucket ``train``: shards of different lengths, and their index."""
    root = tmp_path_factory.mktemp("served")
    (root / "train").mkdir()
    for at, count in enumerate(COUNTS):
        write_shard(root / f"train/{at}.tar", sum(COUNTS[:at]), count)
    with serving(root) as url:
        index = [ONECOPY, "index", "s3://train/{0..3}.tar", "--quiet"]
        subprocess.run([*index, "--endpoint-url", url], check=True, timeout=60)
        yield url


def train(endpoint: str, folder: Path, ranks: int, *options: str) -> dict[int, list[str]]:
    """Run the script on so many ranks; give the samples that each step saw, sorted."""
    log = folder / f"keys-{ranks}"
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)),
        *("--master-port", "0", "--standalone", str(SCRIPT), "s3://train/{0..3}.tar"),
        *("--index", "s3://train/index.json", "--endpoint-url", endpoint),
        *("--global-batch", str(GLOBAL_BATCH), "--epochs", str(EPOCHS), "--shuffle", "200"),
        *("--size", "32", "--classes", "10", "--checkpoint", str(folder / "checkpoint.pt")),
        *("--log-keys", str(log), *options),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    steps: dict[int, list[str]] = {}
    for rank in range(ranks):
        for line in log.with_suffix(f".{rank}").read_text().splitlines():
            step = json.loads(line)
            steps.setdefault(step["step"], []).extend(step["keys"])
    return {step: sorted(keys) for step, keys in steps.items()}


@pytest.mark.timeout(600)
def test_four_ranks_stop_and_two_go_on_with_the_very_same_steps(
    endpoint: str, tmp_path: Path
) -> None:
    """Hold each step, whoever took it, against the run that nobody stopped."""
    alone, broken = tmp_path / "alone", tmp_path / "broken"
    alone.mkdir()
    broken.mkdir()
    whole = train(endpoint, alone, 1)
    assert list(whole) == list(range(1, STEPS + 1))
    for epoch in (range(1, 8), range(8, 15)):
        seen = [key for step in epoch for key in whole[step]]
        assert len(seen) == 7 * GLOBAL_BATCH
        assert len(set(seen)) == sum(COUNTS)
    before = train(endpoint, broken, 4, "--stop-after", str(STOPPED_AFTER))
    assert list(before) == list(range(1, STOPPED_AFTER + 1))
    after = train(endpoint, broken, 2)
    assert list(after) == list(range(STOPPED_AFTER + 1, STEPS + 1))
    assert {**before, **after} == whole
