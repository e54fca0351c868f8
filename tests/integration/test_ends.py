"""A process that is killed in mid-epoch ends the others with an error. Nothing is left to hang."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest

TIMEOUT_S = 120
"""How long processes may take to end by themselves: nothing is measured, only hanging is told."""

RANKS, VICTIM = 4, 1

STEPS_BEFORE = 3
"""Steps that the victim makes."""

RANK = """
    import os, signal, sys
    from pathlib import Path
    import onecopy
    import torch.distributed as dist

    data, told = sys.argv[1], Path(sys.argv[2])
    rank, steps_before, victim = int(os.environ["RANK"]), int(sys.argv[3]), int(sys.argv[4])
    dist.init_process_group(
        "gloo",
        init_method=os.environ.get("TEST_INIT", "env://"),
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    (told / f"process.{rank}").write_text(str(os.getpid()))
    urls = [f"{data}/{at}.tar" for at in range(4)]
    loader = onecopy.open(urls, index=f"{data}/index.json", lanes=8, memory="16MiB")
    loader = loader.shuffle(50).decode().to_tuple("cls").batch(4)
    step = 0
    try:
        while True:
            for (labels,) in loader:
                dist.all_reduce(labels)
                step += 1
                if step == steps_before and rank == victim:
                    os.kill(os.getpid(), signal.SIGKILL)
    except RuntimeError as error:
        (told / f"error.{rank}").write_text(f"{step} {error}")
        raise
"""

PARENT = """
    import os, signal, sys
    import onecopy
    from torch.utils.data import DataLoader, get_worker_info

    def maybe_end(sample):
        if get_worker_info().id == 1 and sample["cls"] > 60:
            os.kill(os.getpid(), signal.SIGKILL)
        return sample

    urls = [f"{sys.argv[1]}/{at}.tar" for at in range(4)]
    loader = onecopy.open(urls, memory="16MiB").decode().map(maybe_end).batch(4)
    for batch in DataLoader(loader, batch_size=None, num_workers=2):
        pass
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards of 100 labels each, and their index."""
    folder = tmp_path_factory.mktemp("data")
    for at in range(4):
        with tarfile.open(folder / f"{at}.tar", "w") as tar:
            for number in range(100):
                content = b"%d" % number
                member = tarfile.TarInfo(f"{at}{number:05}.cls")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    urls = [str(folder / f"{at}.tar") for at in range(4)]
    command = [sys.executable, "-W", "ignore", "-m", "onecopy", "index", *urls, "--quiet"]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return folder


def script(folder: Path, code: str) -> str:
    """Write a script."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(code))
    return str(path)


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that takes one core and talks to this machine alone."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


@pytest.mark.timeout(600)
def test_a_rank_that_is_killed_ends_the_others_with_an_error(data: Path, tmp_path: Path) -> None:
    """No launcher helps: each of the others ends by itself."""
    command = [sys.executable, "-W", "ignore", script(tmp_path, RANK), str(data), str(tmp_path)]
    command += [str(STEPS_BEFORE), str(VICTIM)]
    meeting = f"file://{tmp_path}/meeting"
    ranks = [
        subprocess.Popen(
            command,
            env=environment(RANK=str(rank), WORLD_SIZE=str(RANKS), TEST_INIT=meeting),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        ended = [rank.communicate(timeout=TIMEOUT_S)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert ranks[VICTIM].returncode == -signal.SIGKILL, ended[VICTIM]
    for rank in set(range(RANKS)) - {VICTIM}:
        assert ranks[rank].returncode == 1, ended[rank]
        step, _, error = (tmp_path / f"error.{rank}").read_text().partition(" ")
        # The victim's last step may have been the last of some, and not of others.
        assert int(step) in {STEPS_BEFORE - 1, STEPS_BEFORE}
        assert error in ended[rank]


@pytest.mark.timeout(300)
def test_torchrun_ends_all_ranks_where_one_is_killed(data: Path, tmp_path: Path) -> None:
    """The launcher comes to its end, and none of its processes outlives it."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(RANKS), script(tmp_path, RANK), str(data), str(tmp_path)]
    command += [str(STEPS_BEFORE), str(VICTIM)]
    done = subprocess.run(
        command,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr[-4000:]
    assert "Signal 9 (SIGKILL)" in done.stderr, done.stderr[-4000:]
    for rank in range(RANKS):
        process = (tmp_path / f"process.{rank}").read_text()
        assert not Path("/proc", process).exists(), f"rank {rank} is still there"


def test_a_worker_that_is_killed_ends_the_parent_with_torchs_error(
    data: Path, tmp_path: Path
) -> None:
    """A worker holds an engine of its own, which ends with it; the parent holds none."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script(tmp_path, PARENT), str(data)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr[-4000:]
    # What torch says, by its signal or by the batch that it was about to take from the dead worker.
    said = ("is killed by signal: Killed", "ConnectionResetError", "EOFError")
    assert any(word in done.stderr for word in said), done.stderr[-4000:]
