"""Check, from outside, how often a payload byte is copied on its way into memory.

The real command reads from a real socket under the LD_PRELOAD counter, over HTTP and over HTTPS,
once n bytes and once 2n; the difference, divided by n, is what a byte costs, with start-up left
out. It must be

    user-space copies per byte   at most 0.01
    bytes from the kernel        1.00 for each payload byte (heads and records aside)

and the command's own ledger must say the same. Decrypting is no copy: it is done in place, and
calls no memcpy. What is left over HTTPS are the records at both ends of a range, and some 17 KB of
the client's own state that is moved for each request, which only the counter sees. This is a count,
not a time: it does not depend on how busy the machine is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from measuring import (
    DATA,
    MIB,
    TOOLS,
    counted,
    counter_environment,
    make_objects,
    onecopy_bench,
    run,
    serving,
    sums,
)

COPIES_MAX = 0.01
RECEIVED_MIN, RECEIVED_MAX = 0.999, 1.01
SCHEMES = ("http", "https")
OBJECTS, OBJECT_BYTES = 4, 56 * MIB + 12345  # seven ranges and a rest each, not of whole pages
CONNECTIONS = (1, 4)
MEMORY = "128MiB"  # the least with which ranges have their usual 8 MiB


def known_answer() -> list[str]:
    """Hold the counter against a program whose copies are known."""
    check: list[str | Path] = [TOOLS / "copycheck", "16"]
    want, got = run(check).answer, counted(check)
    # The program also writes its answer and libc may move a few small things: a millionth.
    return [
        f"the counter says {got[name]} bytes {name} of a program that does {want[name]}"
        for name in want
        if abs(got[name] - want[name]) > max(4096, want[name] // 1_000_000)
    ]


def measure(
    port: int, keys: list[str], connections: int, ca_bundle: Path | None
) -> tuple[dict[str, int], dict[str, float]]:
    """Read objects under the counter; return its sums, and the numbers of the ledger."""
    options = ["--connections", str(connections), "--memory", MEMORY]
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as lines:
        env = counter_environment(lines.name)
        done = onecopy_bench(port, keys, "buffer", *options, env=env, ca_bundle=ca_bundle)
        ledger = done.answer
        user = ledger["copies_per_byte"]["user"]
        return sums(lines.read()), {"payload": ledger["payload_bytes"], "user": user}


def check(port: int, keys: list[str], connections: int, ca_bundle: Path | None) -> list[str]:
    """Measure once with half of the objects and once with all; return what is wrong."""
    half = keys[: len(keys) // 2]
    little, little_ledger = measure(port, half, connections, ca_bundle)
    much, ledger = measure(port, keys, connections, ca_bundle)
    n = OBJECT_BYTES * len(half)
    copied = (much["copied"] - little["copied"]) / n
    received = (much["received"] - little["received"]) / n
    scheme = "http" if ca_bundle is None else "https"
    print(
        f"{scheme}, {connections} connection(s): {copied:.4f} user-space copies and "
        f"{received:.4f} bytes from the kernel per payload byte; "
        f"the ledger says {ledger['user']:.4f}"
    )
    wrong = []
    if copied > COPIES_MAX:
        wrong.append(f"{copied:.4f} user-space copies per byte: at most {COPIES_MAX} allowed")
    if not RECEIVED_MIN <= received <= RECEIVED_MAX:
        wrong.append(f"{received:.4f} bytes from the kernel per payload byte: 1.00 expected")
    if (little_ledger["payload"], ledger["payload"]) != (n, 2 * n):
        wrong.append(f"the ledger's payload is {ledger['payload']:.0f} bytes, not {2 * n}")
    if abs(ledger["user"] - copied) > COPIES_MAX:
        wrong.append(f"the ledger says {ledger['user']:.4f} copies, the counter {copied:.4f}")
    return wrong


def main() -> int:
    """Check the counter first, then the command; 0 if all is well."""
    wrong = known_answer()
    if not wrong:
        keys = make_objects(Path("copies"), OBJECTS, OBJECT_BYTES)
        for scheme in SCHEMES:
            ca_bundle = DATA / "tls" / "ca.pem" if scheme == "https" else None
            with serving(DATA, ca_bundle=ca_bundle) as port:
                for connections in CONNECTIONS:
                    wrong += check(port, keys, connections, ca_bundle)
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
