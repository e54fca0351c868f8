"""What it takes to order 10 million samples in 10,000 shards, by one of eight ranks.

Each plan is made by a process of its own: of the shards without an index (what is there is listed,
and nothing is counted), with an index of one sample in each shard, and with that of all samples;
over files and from the S3 server on loopback. What the plan of the counted data takes beyond the
listing is the reading of the index and the computing of the order, and the claim is about that.
Memory is how much the peak of the process grew while it planned, the listing included. The shards
are one sparse file by 10,000 names.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from counted_shards import Shards, order
from measuring import BUCKET, DATA, MIB, serving
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "order of 10 million samples in 10,000 shards"
LIMIT = "1 s and 200 MB on each rank, and a state of less than 1 KB"
SECONDS_MAX, GROWN_MAX, STATE_MAX = 1.0, 200e6, 1000
SHARDS = Shards("order-plan", 10_000, 1000, 100_000, is_sparse=True)
RANKS, SHUFFLE = 8, 10_000
STORES = ("files", "s3")


def asked(case: str, store: str, port: int, rank: int) -> dict[str, Any]:
    """Return what a process is asked for."""
    opened: dict[str, Any] = {"memory": "1GiB"}
    where = f"{DATA / BUCKET}/"
    if store == "s3":
        where = f"s3://{BUCKET}/"
        endpoint = f"http://127.0.0.1:{port}"
        opened |= {"endpoint_url": endpoint, "region": "us-east-1", "no_sign_request": True}
    question: dict[str, Any] = {"urls": f"{where}{SHARDS.folder}/shards/*.tar", "opened": opened}
    if case == "listed":
        return question
    name = SHARDS.index.name if case == "counted" else "index-1.json"
    index = f"{where}{SHARDS.folder}/index/{name}"
    opened |= {"index": index, "rank": rank, "world_size": RANKS}
    # Windows of single samples of 100 MB; the shards have an order of their own all the same.
    return {**question, "shuffle": SHUFFLE if case == "counted" else 2}


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Plan in turns, as another rank in each."""
    SHARDS.make()
    SHARDS.write_index(1)
    with serving(DATA) as port:
        for turn in range(runs):
            for store in STORES:
                for case in ("listed", "few", "counted"):
                    question = asked(case, store, port, turn % RANKS)
                    answer = order("plan", question).answer
                    yield {"store": store, "case": case, **answer}
                answer = order("split", question).answer
                yield {"store": store, "case": "split", **answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Take what counting adds in each turn, and the highest of the memory and of the states."""

    def figures(store: str, case: str, name: str) -> list[float]:
        return [r[name] for r in rows if (r["store"], r["case"]) == (store, case)]

    table = ["| store | plan | seconds, median | peak grown, most |", "|---|---|---|---|"]
    for store in STORES:
        for case, shown in (
            ("listed", "listed only"),
            ("few", "index of 1 sample a shard"),
            ("counted", "index of all samples"),
        ):
            seconds = median(figures(store, case, "seconds"))
            grown = max(figures(store, case, "grown_bytes"))
            table.append(f"| {store} | {shown} | {seconds:.3f} | {grown / MIB:.0f} MiB |")
    table.append("")
    added = []
    for store in STORES:
        pairs = zip(
            figures(store, "counted", "seconds"), figures(store, "listed", "seconds"), strict=True
        )
        added.append(median(counted - listed for counted, listed in pairs))
        parts = [
            median(figures(store, "split", f"{name}_seconds"))
            for name in ("look_up", "order", "order_again")
        ]
        table.append(
            f"{store}: {parts[0]:.3f} s to list and to read the index, {parts[1]:.4f} s for the "
            f"order, {parts[2]:.4f} s once it is known where samples begin.  "
        )
    grown = max(r["grown_bytes"] for r in rows if r["case"] == "counted")
    state = max(r["state_bytes"] for r in rows if "state_bytes" in r)
    samples = {r["samples"] for r in rows if r["case"] == "counted"}
    holds = max(added) < SECONDS_MAX and grown < GROWN_MAX and state < STATE_MAX
    holds &= samples == {SHARDS.shards * SHARDS.samples}
    figure = f"{max(added):.2f} s beyond listing, {grown / 1e6:.0f} MB, state of {state} bytes"
    return Verdict(figure, holds, table)
