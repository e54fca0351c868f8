"""What the checks and benches share: a server of their own, data, and programs run under watch."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import io
import json
import os
import random
import socket
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Command = Sequence[str | Path]

ROOT = Path(__file__).resolve().parent.parent
ONECOPY = ROOT / "target" / "release" / "onecopy"
TAR_BENCH = ROOT / "target" / "release" / "examples" / "tar_bench"
OPEN_BENCH = ROOT / "target" / "release" / "examples" / "open_bench"
TESTKIT = ROOT / "target" / "release" / "onecopy-testkit"
TOOLS = ROOT / "target" / "bench-tools"
DATA = ROOT / "target" / "bench-data"
RIVALS_PYTHON = ROOT / "target" / "rivals" / "bin" / "python"
SUMS = DATA / "checksums"
BUCKET = "bench"
KEY_ID, SECRET, REGION = "benchkey", "benchsecret", "us-east-1"
MIB = 1 << 20
GB = 1e9
RANGE_BYTES = 8 * MIB  # what onecopy asks for at once
START_SECONDS = 20
# The server on one core and the client on another, so that neither is charged for the other.
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]


@dataclass(frozen=True)
class Run:
    """What one run of a program cost, as the kernel accounts it to the process."""

    wall: float
    cpu: float
    peak_rss_bytes: int
    answer: dict[str, Any]


def run(command: Command, env: dict[str, str] | None = None, timeout: float = 300) -> Run:
    """Run a program on the client's core; its last line of output is JSON."""
    done, lines = _watched(command, env, timeout)
    answer = json.loads(lines if lines.startswith("{") else lines.splitlines()[-1])
    return dataclasses.replace(done, answer=answer)


def charged(command: Command, env: dict[str, str] | None = None, timeout: float = 300) -> Run:
    """Run a program on the client's core, whatever it says."""
    return _watched(command, env, timeout)[0]


def _watched(command: Command, env: dict[str, str] | None, timeout: float) -> tuple[Run, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(
            # Before it begins: threads that it starts at once must not be elsewhere, and programs
            # that ask how many cores there are must be told one.
            ["taskset", "--cpu-list", str(CLIENT_CORE), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(env or {})},
        )
        # wait4 alone tells what the kernel charged to this process, and has no time limit itself.
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            if time.monotonic() - began > timeout:
                process.kill()
            time.sleep(0.005)
        wall = time.monotonic() - began
        _, status, usage = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        lines = out.read().decode().strip()
        if process.returncode:
            text = err.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{command} ended with {process.returncode}:\n{text}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, usage.ru_maxrss * 1024, {}), lines


@contextlib.contextmanager
def serving(root: Path, *, ca_bundle: Path | None = None, has_sums: bool = False) -> Iterator[int]:
    """Serve the folders below root as buckets; gives the port.

    Over HTTPS where a ca_bundle is named: DIR/ca.pem, which the server writes. With has_sums it
    gives a CRC64NVME of every object to those who ask for it, as S3 does.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    log = DATA / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command: Command = [
        TESTKIT,
        "serve",
        "--root",
        root,
        # Signed or not: the floor does not sign, and other clients do.
        "--anonymous",
        *("--key", KEY_ID, "--secret", SECRET),
        *("--port", str(port)),
    ]
    if ca_bundle is not None:
        ca_bundle.unlink(missing_ok=True)
        command = [*command, "--tls", ca_bundle.parent]
    if has_sums:
        command = [*command, "--sums", SUMS]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)
        os.sched_setaffinity(process.pid, {SERVER_CORE})
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    # The certificate is written once the server listens.
                    if ca_bundle is None or (ca_bundle.exists() and ca_bundle.stat().st_size):
                        break
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def faulty(*options: str) -> Iterator[int]:
    """Run the fault server with these options; gives the port."""
    command: Command = [TESTKIT, "fault", "--until-stdin-closes", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        os.sched_setaffinity(process.pid, {SERVER_CORE})
        try:
            if process.stdout is None:
                raise RuntimeError("no pipe")
            told = json.loads(process.stdout.readline())
            yield int(told["endpoint"].rsplit(":", 1)[1])
        finally:
            process.terminate()


def make_objects(folder: Path, count: int, size: int, *, sparse: bool = False) -> list[str]:
    """Make objects of random bytes (or of nothing, if sparse) once; return their keys."""
    target = DATA / BUCKET / folder
    target.mkdir(parents=True, exist_ok=True)
    source = random.Random(0)  # noqa: S311 - only to be of no pattern
    for number in range(count):
        file = target / f"object-{number:04d}"
        if file.exists() and file.stat().st_size == size:
            continue
        with file.open("wb") as out:
            if sparse:
                out.truncate(size)
            else:
                for at in range(0, size, MIB):
                    out.write(source.randbytes(min(MIB, size - at)))
    return [f"{folder}/object-{number:04d}" for number in range(count)]


def warm(keys: list[str]) -> None:
    """Read the files once, so that no run waits for the disk."""
    for key in keys:
        with (DATA / BUCKET / key).open("rb", buffering=0) as file:
            while file.read(MIB):
                pass


def sum_up(keys: list[str]) -> None:
    """Let the server compute the checksums of these objects, so that it does not during a run."""
    with serving(DATA, has_sums=True) as port:
        for key in keys:
            asking = http.client.HTTPConnection("127.0.0.1", port)
            asking.request("HEAD", f"/{BUCKET}/{key}", headers={"x-amz-checksum-mode": "ENABLED"})
            told = asking.getresponse()
            asking.close()
            if not told.getheader("x-amz-checksum-crc64nvme"):
                raise RuntimeError(f"the server gives no checksum of {key}: {told.status}")


def need_verified(run: Run, objects: int) -> None:
    """See to it that a run held so many objects against their checksums."""
    verified = sum(run.answer["verified"].values())
    if verified != objects:
        raise RuntimeError(f"{verified} of {objects} objects were held against their checksums")


def onecopy_bench(
    port: int,
    keys: list[str],
    to: str,
    *options: str,
    env: dict[str, str] | None = None,
    ca_bundle: Path | None = None,
) -> Run:
    """Run `onecopy bench` on objects of the server; the answer is its ledger.

    Signed; over HTTPS where a ca_bundle is named.
    """
    urls = [f"s3://{BUCKET}/{key}" for key in keys]
    scheme = "http" if ca_bundle is None else "https"
    endpoint = ["--endpoint-url", f"{scheme}://127.0.0.1:{port}"]
    if ca_bundle is not None:
        endpoint += ["--ca-bundle", str(ca_bundle)]
    command: Command = [ONECOPY, "bench", *urls, "--to", to, "--json", *endpoint, *options]
    account = {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return run(command, {**account, **(env or {})})


def floor(
    port: int, keys: list[str], connections: int, memory: int, *, range_bytes: int | None
) -> Run:
    """Run the floor on the same objects, whole or in ranges."""
    reads = []
    for key in keys:
        size = (DATA / BUCKET / key).stat().st_size
        reads += [key] if range_bytes is None else ranges(key, size, range_bytes)
    return floor_of(port, reads, connections, memory)


def ranges(key: str, size: int, range_bytes: int) -> list[str]:
    """Return the lines of the floor's list for all ranges of an object."""
    starts = range(0, size, range_bytes)
    return [f"{key} {start} {min(start + range_bytes, size)}" for start in starts]


def floor_of(port: int, lines: list[str], connections: int, memory: int) -> Run:
    """Run the floor on what these lines name: KEY, or KEY START END."""
    with tempfile.NamedTemporaryFile("w", suffix=".list") as reads:
        reads.writelines(f"/{BUCKET}/{line}\n" for line in lines)
        reads.flush()
        numbers = [str(port), str(connections), str(memory)]
        command: Command = [TOOLS / "floor", "127.0.0.1", *numbers, reads.name]
        return run(command)


def opening(size: int, memory: int) -> Run:
    """Open so many bytes of AES-128-GCM records from the cache into so much memory."""
    return run([OPEN_BENCH, str(size), str(memory)])


def counted(command: Command, env: dict[str, str] | None = None) -> dict[str, int]:
    """Run a program under the copy counter; return the sums over all its processes."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as lines:
        run(command, counter_environment(lines.name) | (env or {}))
        return sums(lines.read())


def counter_environment(file: str) -> dict[str, str]:
    """Return the variables that put the counter in front of a program."""
    return {"LD_PRELOAD": str(TOOLS / "copycount.so"), "COPYCOUNT_OUT": file}


def sums(lines: str) -> dict[str, int]:
    """Add up the counter's lines, one for each process."""
    rows = [json.loads(line) for line in lines.splitlines()]
    if not rows:
        raise RuntimeError("the copy counter wrote nothing: was the program linked statically?")
    return {k: sum(r[k] for r in rows) for k in ("copied", "small", "received", "sent")}


def make_shard(name: str, samples: int, sample_bytes: int) -> str:
    """Make a shard of arrays (npy) and labels (cls) once, by Python's tarfile; return its key."""
    file = DATA / BUCKET / "shards" / f"{name}-{samples}x{sample_bytes}.tar"
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        return f"shards/{file.name}"
    source = random.Random(0)  # noqa: S311 - only to be of no pattern
    shape = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({sample_bytes},), }}"
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + shape.ljust(117).encode() + b"\n"
    unfinished = file.with_suffix(".part")
    with tarfile.open(unfinished, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(samples):
            parts = {"npy": head + source.randbytes(sample_bytes), "cls": str(number).encode()}
            for field, body in parts.items():
                member = tarfile.TarInfo(f"{number:08d}.{field}")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    unfinished.rename(file)
    return f"shards/{file.name}"
