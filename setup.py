"""Builds the Cython kernels; where no C compiler is found, with the one inside the `ziglang` wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
KERNELS = sorted(
    path.relative_to(ROOT) for package in ("schema_mapping", "archiver") for path in (ROOT / package).rglob("*.pyx")
)


def choose_compiler() -> None:
    """Point CC at zig's C compiler when neither CC nor a system compiler is there."""
    if os.environ.get("CC") or any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        return
    if importlib.util.find_spec("ziglang") is None:
        return
    os.environ["CC"] = f"{sys.executable} -m ziglang cc"
    os.environ["LDSHARED"] = f"{sys.executable} -m ziglang cc -shared"


choose_compiler()
setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        [
            Extension(
                ".".join(path.with_suffix("").parts),
                [str(path)],
                extra_compile_args=[*os.environ.get("KERNEL_FLAGS", "-O3").split(), "-fno-strict-aliasing"],
            )
            for path in KERNELS
        ],
        language_level=3,
        nthreads=0,
    ),
)
