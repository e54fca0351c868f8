"""Check that the calls banned in clippy.toml really are refused.

A ban whose path is misspelt bans nothing, and says nothing. So this writes a small crate with one
call for each entry of `disallowed-methods`, runs clippy on it with the clippy.toml and the lint
level of this tree, and wants an error at each call, naming the entry, and none anywhere else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "target" / "check-bans"

# One call for each ban, as the body of a function. A new ban needs a line here.
CALLS = {
    "bytes::Bytes::copy_from_slice": "(a: &[u8]) { drop(bytes::Bytes::copy_from_slice(a)) }",
    "slice::clone_from_slice": "(a: &mut [u8], b: &[u8]) { a.clone_from_slice(b) }",
    "slice::copy_from_slice": "(a: &mut [u8], b: &[u8]) { a.copy_from_slice(b) }",
    "slice::copy_within": "(a: &mut [u8]) { a.copy_within(0..1, 1) }",
    "slice::to_vec": "(a: &[u8]) -> Vec<u8> { a.to_vec() }",
    "std::io::Read::read_to_end": "(mut a: impl Read, b: &mut Vec<u8>) { drop(a.read_to_end(b)) }",
    "std::io::copy": "(mut a: &[u8], b: &mut Vec<u8>) { drop(std::io::copy(&mut a, b)) }",
    "std::ptr::copy": "(a: *const u8, b: *mut u8) { unsafe { ptr::copy(a, b, 1) } }",
    "std::ptr::copy_nonoverlapping": "(a: *const u8, b: *mut u8) "
    "{ unsafe { ptr::copy_nonoverlapping(a, b, 1) } }",
    "std::thread::spawn": "() { drop(std::thread::spawn(|| ())) }",
    "std::vec::Vec::extend_from_slice": "(a: &mut Vec<u8>, b: &[u8]) { a.extend_from_slice(b) }",
}
ALLOWED = "(a: &mut [u8]) { a.fill(0) }"


def write_crate(paths: list[str], level: str) -> dict[int, str]:
    """Write the crate; return the line of each banned call."""
    lines = ["//! One banned call a line.", "use std::{io::Read, ptr};"]
    at = {}
    for number, path in enumerate(paths):
        lines.append(f"pub fn banned_{number}{CALLS[path]}")
        at[len(lines)] = path
    lines.append(f"pub fn allowed{ALLOWED}")
    (CRATE / "src").mkdir(parents=True, exist_ok=True)
    (CRATE / "src" / "lib.rs").write_text("\n".join(lines) + "\n")
    (CRATE / "Cargo.toml").write_text(
        '[package]\nname = "check-bans"\nedition = "2024"\n[workspace]\n'
        '[dependencies]\nbytes = "1"\n'
        f'[lints.clippy]\ndisallowed_methods = "{level}"\n'
        # Only the bans are on trial here.
        'not_unsafe_ptr_arg_deref = "allow"\n'
    )
    return at


def refusals() -> dict[int, str]:
    """Run clippy; return what it said of banned calls, by line, as errors only."""
    command = ["cargo", "clippy", "--quiet", "--message-format=json"]
    env = dict(os.environ, CLIPPY_CONF_DIR=str(ROOT), CARGO_TARGET_DIR=str(CRATE / "target"))
    done = subprocess.run(command, cwd=CRATE, env=env, capture_output=True, text=True, check=False)
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        message = json.loads(line).get("message", {})
        code = (message.get("code") or {}).get("code")
        if code == "clippy::disallowed_methods" and message["level"] == "error":
            said[message["spans"][0]["line_start"]] = message["rendered"]
        elif message.get("level") == "error" and code:
            raise SystemExit(f"error: the crate itself is wrong:\n{message['rendered']}")
    if done.returncode == 0 or not said:
        raise SystemExit(f"error: clippy refused nothing\n{done.stderr}")
    return said


def main() -> int:
    """Hold what clippy refuses against clippy.toml; 0 if they agree."""
    bans = tomllib.loads((ROOT / "clippy.toml").read_text())["disallowed-methods"]
    lints = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["lints"]["clippy"]
    paths = [ban["path"] for ban in bans]
    if set(paths) != set(CALLS):
        odd = sorted(set(paths) ^ set(CALLS))
        print(f"error: clippy.toml and CALLS in {__file__} differ by {odd}", file=sys.stderr)
        return 1
    at = write_crate(paths, lints["disallowed_methods"])
    said = refusals()
    reasons = {ban["path"]: ban["reason"] for ban in bans}
    wrong = [
        f"clippy lets {path} pass, or does not say why it is banned"
        for line, path in at.items()
        if reasons[path] not in said.get(line, "")
    ]
    wrong += [f"clippy refuses line {line}, which is allowed" for line in said if line not in at]
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    if not wrong:
        print(f"clippy refuses all {len(paths)} banned calls")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
