"""Make `import torch` work without its CUDA libraries: for the tests of this tree only.

The torch on PyPI is built for CUDA. With all that it asks for it takes 5.4 GB and some minutes;
installed alone (1.2 GB) it does not import, because libcublas and others are missing. Python loads
extension modules with every symbol resolved at once, so each missing library needs a file and each
missing symbol an address. This script makes both: one library in which every missing CUDA function
stands and aborts when called, and empty libraries, by the missing names, that lean on it. libcudart
must be the real one (torch calls it while loading) and comes from the wheel nvidia-cuda-runtime.

On the CPU everything works then; a call that needs a GPU says that there is no driver. Never do
this to an environment that is to see a GPU.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

SITE = Path(sysconfig.get_paths()["purelib"])
TORCH = SITE / "torch" / "lib"
STAND_IN = "libcuda_stand_in_for_tests.so"
# Libraries of CUDA that torch may be linked with, by the start of their names.
CUDA_LIBRARY = re.compile(
    r"lib(cu(blas|blasLt|dnn|fft|fftw|sparse|sparseLt|solver|rand|file|pti)|n(ccl|vrtc|vJitLink|vshmem_host))\.so"
)
# Functions and objects that those libraries would define.
CUDA_SYMBOL = re.compile(
    r"(cu(blas|dnn|fft|sparse|solver|rand|File|pti)|nccl|nvrtc|nvshmem|nvJitLink|__nvJitLink|cu[A-Z])"
)
# dlopened by name, so no library lists them as needed.
DLOPENED = re.compile(rb"lib(?:nvJitLink|nvshmem_host|cublasLt)\.so\.\d+")


def run(*command: str | Path) -> str:
    """Run a command and return what it printed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_by(library: Path) -> set[str]:
    """Return the names of the libraries that this one is linked with."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--wide", "--dynamic", library)))


def symbols_of(library: Path) -> tuple[set[str], set[str]]:
    """Return the names that a library wants from others, and those that it defines."""
    wanted: set[str] = set()
    defined: set[str] = set()
    for line in run("readelf", "--wide", "--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            name = fields[7].split("@")[0]
            (wanted if fields[6] == "UND" else defined).add(name)
    return wanted, defined


def link(target: Path, soname: str, *arguments: str | Path) -> None:
    """Link a shared library of that name."""
    run("cc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", target, *arguments)


def main() -> int:
    """Make the stand-ins beside the real libcudart and import torch."""
    runtime = next(SITE.glob("nvidia/*/lib/libcudart.so.*"), None)
    if runtime is None or not TORCH.is_dir():
        print("error: torch and nvidia-cuda-runtime are not installed here", file=sys.stderr)
        return 2
    folder = runtime.parent
    libraries = sorted(TORCH.glob("*.so*"))
    needed: set[str] = set()
    wanted: set[str] = set()
    defined: set[str] = set()
    for library in [*libraries, runtime]:
        a, b = symbols_of(library)
        wanted |= a
        defined |= b
    for library in libraries:
        needed |= needed_by(library)
        needed |= {name.decode() for name in DLOPENED.findall(library.read_bytes())}
    missing = sorted(n for n in needed if CUDA_LIBRARY.match(n) and not (folder / n).exists())
    names = sorted(s for s in wanted - defined if CUDA_SYMBOL.match(s))

    source = folder / "stand_in.c"
    lines = ["#include <stdlib.h>", "#include <stdio.h>"]
    lines.append('static int absent(void) { fputs("no CUDA in this torch\\n", stderr); abort(); }')
    lines += [f'__attribute__((alias("absent"))) int {name}(void);' for name in names]
    source.write_text("\n".join(lines) + "\n")
    link(folder / STAND_IN, STAND_IN, source)
    source.unlink()
    for name in missing:
        link(
            folder / name,
            name,
            "-xc",
            "/dev/null",
            "-Wl,--no-as-needed",
            f"-L{folder}",
            f"-l:{STAND_IN}",
            "-Wl,-rpath,$ORIGIN",
        )
    check = "import torch; print(torch.__version__, int(torch.ones(3).sum()))"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        print("error: torch does not import with the stand-ins", file=sys.stderr)
        return 2
    print(f"torch {done.stdout.split()[0]} for the CPU: {len(missing)} libraries stood in for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
