"""Starts a Spark session from `[spark]`, whose options win over the defaults.

`remote = "sc://…"` connects to Spark Connect. `spark-submit`'s settings replace the defaults.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from archiver.engine.classic_settings import (
    classic_settings,
    given,
    is_submitted,
    master_of,
    prepare_environment,
    with_class_archive,
)
from archiver.engine.java import filtered_children, require_java
from archiver.engine.master import check_master, require_answer
from archiver.errors import ConfigError, EngineError
from schema_mapping.errors import ContextError


def check_spark(options: Mapping[str, str]) -> None:
    """Raises ConfigError for unknown options, an invalid master, or an unsupported Java. Starts nothing."""
    if is_submitted(os.environ):
        _check_submitted(options)
    if "master" in options and "remote" in options:
        raise ConfigError("Give either `master` (classic Spark) or `remote` (Spark Connect)", key="spark")
    for key in given(options):
        if not key.startswith("spark."):
            raise ConfigError(
                "Options in [spark] are `master`, `remote`, or Spark's own, whose names begin with 'spark.'",
                key=f"spark.{key}",
            )
    if "remote" not in options and not is_submitted(os.environ):
        check_master(master_of(options))
        require_java(os.environ)


def _check_submitted(options: Mapping[str, str]) -> None:
    for key in ("master", "remote", "spark.master"):
        if key in options:
            raise ConfigError(
                "spark-submit says where the job runs (--master); leave it out of [spark]", key=f"spark.{key}"
            )


def start_session(
    options: Mapping[str, str], preloaded: Sequence[str] = (), heaps: int = 1
) -> tuple[SparkSession, bool]:
    """Also return whether the session was started. Raises ConfigError as `check_spark`.

    Workers on this machine import `preloaded` and share `heaps` heaps. Raises EngineError if Spark doesn't start.
    """
    check_spark(options)
    remote = options.get("remote")
    try:
        return _join_connect(remote, options) if remote else _start_classic(options, preloaded, heaps)
    except ContextError:
        raise
    except Exception as error:
        raise EngineError(
            f"Spark did not start: {reason_of(error)}", spark=remote or _place(options), **_told(error)
        ) from error


def reason_of(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0]


def _told(error: Exception) -> dict[str, str]:
    said = [note for note in getattr(error, "__notes__", ()) if note]
    return {"java_said": " / ".join(said)} if said and "JAVA_GATEWAY_EXITED" in str(error) else {}


def _place(options: Mapping[str, str]) -> str:
    return "spark-submit" if is_submitted(os.environ) else classic_settings(options)["spark.master"]


def _join_connect(remote: str, options: Mapping[str, str]) -> tuple[SparkSession, bool]:
    require_answer(remote)
    builder = SparkSession.builder.remote(remote)
    for key, value in given(options).items():
        builder = builder.config(key, value)
    return builder.create(), True


def _start_classic(options: Mapping[str, str], preloaded: Sequence[str], heaps: int) -> tuple[SparkSession, bool]:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active.newSession(), False
    if is_submitted(os.environ):
        return _started(given(options)), True
    settings = classic_settings(options, preloaded, heaps)
    require_answer(settings["spark.master"])
    prepare_environment(settings, os.environ)
    return _started(with_class_archive(settings)), True


def _started(settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with filtered_children(), _own_interrupt():
        return builder.getOrCreate()


@contextmanager
def _own_interrupt() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
