"""What the tests share."""

from pathlib import Path

import pytest

import shards


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A shard of ten samples with all kinds of fields."""
    return shards.numbered(tmp_path / "ten.tar", 0, 10)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Four shards of 25 samples with a ``cls`` each, numbered through."""
    return [shards.small(tmp_path / f"{at}.tar", at * 25, 25) for at in range(4)]
