"""Builds the Cython kernels; where no C compiler is found, with the one inside the `ziglang` wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
KERNELS = sorted(
    (path.relative_to(ROOT) for package in ("schema_mapping", "archiver") for path in (ROOT / package).rglob("*.pyx")),
    key=lambda path: (-(ROOT / path).stat().st_size, path),
)
"""The largest first: what is compiled last should be short, as the other cores have nothing to do meanwhile."""

SHARED = ROOT / "schema_mapping" / "_cython.c"
"""Cython's own code, compiled once for all kernels instead of into each."""

ASKED_FOR_METADATA = not {"egg_info", "dist_info"}.isdisjoint(sys.argv)
"""Whether pip asks only who we are, as it does before it has anything built. Nothing need be translated for that."""

FLAGS = [*os.environ.get("KERNEL_FLAGS", "-O3 -g0").split(), "-fno-strict-aliasing"]


def choose_compiler() -> None:
    """Point CC at zig's C compiler when neither CC nor a system compiler is there."""
    if os.environ.get("CC") or any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        return
    if importlib.util.find_spec("ziglang") is None:
        return
    os.environ["CC"] = f"{sys.executable} -m ziglang cc"
    os.environ["LDSHARED"] = f"{sys.executable} -m ziglang cc -shared"


def module(path: Path) -> Extension:
    """The extension module that a source is compiled to."""
    return Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=FLAGS)


def build() -> None:
    """Translate and compile the kernels on all cores."""
    if ASKED_FOR_METADATA:
        setup(ext_modules=[module(path) for path in KERNELS])
        return
    choose_compiler()
    shared = module(SHARED.relative_to(ROOT))
    subprocess.run([sys.executable, "-m", "cython", f"--generate-shared={SHARED}"], check=True)  # noqa: S603
    kernels = cythonize(
        [module(path) for path in KERNELS],
        language_level=3,
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=shared.name,
    )
    setup(options={"build_ext": {"parallel": os.cpu_count()}}, ext_modules=[shared, *kernels])


if __name__ == "__main__":  # where processes are spawned, those that translate import this file
    build()
