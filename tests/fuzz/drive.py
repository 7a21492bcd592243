"""Runs a fuzz target, guided by coverage or on kept inputs and their changes.

Usage, by scripts/fuzz: drive.py guided TARGET SECONDS FOLDER [libFuzzer options]; drive.py merge TARGET FOLDER LEAST;
drive.py keep TARGET LEAST, which keeps those inputs; drive.py replay TARGET SECONDS.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.corpus import read_corpus, write_corpus
from tests.support.schemas.random_messages import damaged

OPTIONS = ("-max_len=4096", "-timeout=30", "-rss_limit_mb=6000", "-print_final_stats=1")

PYTHON_EDGES = {
    "frames": ("archiver.serve.kafka.frames", "archiver.serve.kafka.request_reader", "archiver.serve.kafka.messages")
}
"""Python modules whose edges guide the search of a target, besides the kernels'."""


def target(name: str) -> Any:
    return import_module(f"tests.fuzz.{name}_target")


def watched(name: str) -> Any:
    import atheris  # type: ignore[import-not-found,unused-ignore]

    with atheris.instrument_imports(include=list(PYTHON_EDGES.get(name, ("nothing",)))):
        return target(name)


def guided(name: str, seconds: str, folder: str, *options: str) -> None:
    import atheris  # type: ignore[import-not-found,unused-ignore]

    watched(name)
    corpus = Path(folder) / name
    corpus.mkdir(parents=True, exist_ok=True)
    for octets in (*target(name).seeds(), *read_corpus(name)):
        (corpus / sha256(octets).hexdigest()[:16]).write_bytes(octets)
    target(name).check(b"")  # of kernels that are loaded later, libFuzzer doesn't count the edges
    limits = (f"-max_total_time={seconds}", f"-artifact_prefix={folder}/{name}-")
    atheris.Setup([sys.argv[0], str(corpus), *OPTIONS, *limits, *options], target(name).check)
    atheris.Fuzz()


def merge(name: str, folder: str, least: str) -> None:
    import atheris  # type: ignore[import-not-found,unused-ignore]

    watched(name)
    # libFuzzer starts the first argument again, in a shell, for each input that might end the process.
    again = f"{sys.executable} {sys.argv[0]} inner {name}"
    atheris.Setup([again, "-merge=1", *OPTIONS, least, f"{folder}/{name}"], target(name).check)
    atheris.Fuzz()


def inner(name: str, *options: str) -> None:
    import atheris  # type: ignore[import-not-found,unused-ignore]

    atheris.Setup([sys.argv[0], *options], watched(name).check)
    atheris.Fuzz()


def replay(name: str, seconds: str) -> None:
    check: Callable[[bytes], None] = target(name).check
    inputs = [*target(name).seeds(), *read_corpus(name)]
    started = time.monotonic()
    for octets in inputs:
        _try(check, octets)
    tried = len(inputs)
    while time.monotonic() - started < float(seconds):
        _try(check, damaged(tried, damaged(tried // 2, inputs[tried % len(inputs)])))
        tried += 1
    print(f"{name}: {tried} inputs, {len(inputs)} of them kept, no failure")  # noqa: T201 - a command


def _try(check: Callable[[bytes], None], octets: bytes) -> None:
    try:
        check(octets)
    except BaseException:
        print(f"failing input: {octets.hex()}", file=sys.stderr)  # noqa: T201
        raise


def keep(name: str, folder: str) -> None:
    write_corpus(name, [path.read_bytes() for path in Path(folder).iterdir()])


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"guided": guided, "merge": merge, "inner": inner, "replay": replay, "keep": keep}[command](*arguments)
