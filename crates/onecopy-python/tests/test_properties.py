"""What holds for any dataset, batch, number of ranks and place to stop: ORDER.md, by chance."""

import json
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain
from math import lcm
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

import onecopy
import shards
from onecopy import _onecopy

bounded = hypothesis.settings(
    max_examples=60, deadline=None, derandomize=True, database=None, print_blob=False
)
"""Few enough for some seconds, and the same each time."""


@dataclass(frozen=True)
class Case:
    """A dataset, and how it is read."""

    counts: list[int]
    """Samples of each shard."""
    lanes: int
    ranks: int
    others: int
    """Ranks that go on."""
    global_batch: int
    tail: str
    capacity: int
    seed: int

    def is_impossible(self, ranks):
        """Say whether some rank would get nothing in some step, or all would get nothing at all."""
        samples = sum(self.counts)
        if self.tail == "drop":
            return samples < self.global_batch
        return self.tail == "short" and 0 < samples % self.global_batch < ranks

    def numbers(self, shard, begin, end):
        """Return the samples of a part of a shard."""
        first = sum(self.counts[:shard])
        return range(first + begin, first + end)


@st.composite
def cases(draw):
    counts = draw(
        st.just([5, 1, 0, 7]) | st.lists(st.integers(0, 7), min_size=1, max_size=5).filter(any)
    )
    lanes = draw(st.sampled_from([12, 6, 4, 2]))
    possible = [count for count in (1, 2, 3, 4) if lanes % count == 0]
    before, after = draw(st.permutations(possible))[:2]
    return Case(
        counts=counts,
        lanes=lanes,
        ranks=before,
        others=after,
        global_batch=lcm(before, after) * draw(st.integers(1, 3)),
        tail=draw(st.sampled_from(["short", "pad", "drop"])),
        capacity=draw(st.integers(0, 30)),
        seed=draw(st.integers(0, 2**32)),
    )


@contextmanager
def written(case):
    """Write the dataset and its index; give what opens it on so many ranks."""
    with tempfile.TemporaryDirectory() as folder:
        firsts = [0, *accumulate(case.counts)]
        urls = [
            shards.small(Path(folder, f"{at}.tar"), firsts[at], count)
            for at, count in enumerate(case.counts)
        ]
        command = ["onecopy", "index", *urls, "--out", f"{folder}/index", "--quiet"]
        assert _onecopy.run_command(command) == 0

        def world(ranks):
            return [
                onecopy.open(
                    urls,
                    as_="numpy",
                    index=f"{folder}/index/index.json",
                    memory="64MiB",
                    lanes=case.lanes,
                    rank=rank,
                    world_size=ranks,
                )
                .shuffle(case.capacity, seed=case.seed)
                .decode()
                .to_tuple("cls")
                .batch(case.global_batch // ranks, tail=case.tail)
                for rank in range(ranks)
            ]

        yield world


def together(world):
    """Read on each rank, and return what they got in each step, all together."""
    of_ranks = [[labels.tolist() for (labels,) in loader] for loader in world]
    assert len({len(steps) for steps in of_ranks}) == 1, "unequal steps"
    return [sorted(chain.from_iterable(step)) for step in zip(*of_ranks, strict=True)]


@bounded
@hypothesis.given(cases())
def test_every_sample_comes_once_but_for_what_the_plan_says(case):
    with written(case) as world:
        loaders = world(case.ranks)
        if case.is_impossible(case.ranks):
            for refused in chain.from_iterable(
                (loader.plan, loader.__iter__) for loader in loaders
            ):
                with pytest.raises(onecopy.InvalidInputError, match="global batch"):
                    refused()
            return
        plans = [loader.plan() for loader in loaders]
        steps = together(loaders)
    for plan in plans:
        assert len(steps) == plan.steps
        assert plan.dataset_samples == sum(case.counts)
        assert plan.samples == sum(map(len, steps))
        odd = Counter(chain.from_iterable(case.numbers(*part) for part in plan.odd))
        assert plan.padded + plan.dropped == odd.total()
        expected = Counter(range(sum(case.counts)))
        if plan.padded:
            expected += odd
        else:
            expected -= odd
        assert Counter(chain.from_iterable(steps)) == expected
    if case.tail != "short":
        assert {len(step) for step in steps} <= {case.global_batch}


@bounded
@hypothesis.given(cases(), st.data())
def test_what_follows_any_step_is_the_same_on_any_ranks(case, data):
    hypothesis.assume(not case.is_impossible(case.ranks))
    hypothesis.assume(not case.is_impossible(case.others))
    with written(case) as world:
        first = world(case.ranks)
        whole, following = together(first), together(first)
        stop = data.draw(st.integers(0, len(whole)), label="stop")
        states = []
        for loader in world(case.ranks):
            iterator = iter(loader)
            for _ in range(stop):
                next(iterator)
            states.append(loader.state_dict())
            iterator.close()
        text = json.dumps(states[0])
        assert json.loads(text) == states[0]
        assert all(state == states[0] for state in states)
        after = world(case.others)
        for loader in after:
            loader.load_state_dict(json.loads(text))
            assert loader.state_dict() == states[0]
        # A state behind the last step begins the next epoch.
        rest, then = together(after), together(after)
    assert rest == (whole[stop:] if stop < len(whole) else following)
    if stop < len(whole):
        assert then == following
