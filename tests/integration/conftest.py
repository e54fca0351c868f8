"""Fixtures: servers that run for the whole session, and shards that lie on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from servers import Server, environment, started
from shards import PACKERS, pack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "photos"


@dataclass(frozen=True)
class Shards:
    """The same shards as local files and on a server."""

    server: Server
    files: list[Path]
    prefix: str

    @property
    def url(self) -> str:
        """The shards on the server, as one pattern."""
        return f"s3://{BUCKET}/{self.prefix}/photos-{{0000..{len(self.files) - 1:04d}}}.tar"


@pytest.fixture(scope="session", autouse=True)
def _credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """SeaweedFS, which checks signatures."""
    with started("seaweedfs", tmp_path_factory.mktemp("seaweedfs")) as server:
        server.client().create_bucket(Bucket=BUCKET)
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """moto, which answers most like S3 itself but believes every signature."""
    with started("moto", tmp_path_factory.mktemp("moto")) as server:
        server.client().create_bucket(Bucket=BUCKET)
        yield server


@pytest.fixture(scope="session", params=["seaweedfs", "moto"])
def server(request: pytest.FixtureRequest) -> Server:
    """Each of the servers in turn."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session", params=PACKERS)
def packed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Path]]:
    """Shards as local files, by each of the packers in turn."""
    return request.param, pack(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def photo_shards(server: Server, packed: tuple[str, list[Path]]) -> Shards:
    """Shards of each packer on each server."""
    prefix, files = packed
    client = server.client()
    for file in files:
        client.upload_file(str(file), BUCKET, f"{prefix}/{file.name}")
    return Shards(server, files, prefix)
