"""Starts a Spark session from the configuration's `[spark]`, with defaults for jobs without shuffles.

`remote = "sc://…"` connects to Spark Connect. Anything else starts classic Spark in this process, on Java 17 or 21.
Options in the configuration win over the defaults. Under `spark-submit`, its settings replace the defaults.
"""

from __future__ import annotations

import importlib.resources
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from archiver.engine.class_archive import class_archive_options
from archiver.engine.java import filtered_children, found_java, require_java
from archiver.engine.master import check_master, require_answer
from archiver.engine.worker_daemon import HEAPS, PRELOADED
from archiver.errors import ConfigError, EngineError
from schema_mapping.errors import ContextError

DEFAULT_MASTER = "local[*]"
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "archiver.engine.worker_daemon",
}
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -Xms64m"
"""The driver's JVM only schedules a few tasks and sees no records. Its optimising compiler cost more time than all its
work. Its heap starts at a 64th of the machine's memory by default, and fills that before the first collection."""
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_LOCAL_COLLECTOR = "-XX:+UseSerialGC"
"""The collector that needs the least memory. Java refuses to start with two collectors, so a given one replaces it."""
_DEFAULTS = {
    "spark.app.name": "archiver",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    **dict.fromkeys(
        (
            "spark.ui.retainedJobs",
            "spark.ui.retainedStages",
            "spark.ui.retainedTasks",
            "spark.sql.ui.retainedExecutions",
        ),
        "100",  # Spark keeps data of finished tasks (each is a job), even without the page that would show it
    ),
}


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether `spark-submit` started this process. Then the JVM runs already, with its own master and options."""
    return "PYSPARK_GATEWAY_PORT" in environment


def check_spark(options: Mapping[str, str]) -> None:
    """Raise ConfigError for options that aren't Spark's, a master that is none, and if no Java fits. Starts nothing."""
    if is_submitted(os.environ):
        _check_submitted(options)
    if "master" in options and "remote" in options:
        raise ConfigError("Give either `master` (classic Spark) or `remote` (Spark Connect)", key="spark")
    for key in _given(options):
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
    """Start the session that `options` describe. If one is active in this process, make a new one beside it.

    The flag says whether a session was started. `preloaded` names modules that the workers of a new session on this
    machine import before their first task, and `heaps` says how many heaps the threads of one share. Raises what
    `check_spark` raises, and EngineError if Spark doesn't start.
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
    """The line of an error of Spark's that names the cause; py4j puts one of its own before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0]


def _told(error: Exception) -> dict[str, str]:
    """What the process that ended said on standard error, where that is the only reason there is."""
    said = [note for note in getattr(error, "__notes__", ()) if note]
    return {"java_said": " / ".join(said)} if said and "JAVA_GATEWAY_EXITED" in str(error) else {}


def runs_here(options: Mapping[str, str]) -> bool:
    """Whether tasks run on this machine, by these options."""
    if "remote" in options or is_submitted(os.environ):
        return False
    return re.match(r"local(\[|$)", master_of(options)) is not None


def master_of(options: Mapping[str, str]) -> str:
    """The master that `options` name, else the default."""
    return options.get("master") or options.get("spark.master") or DEFAULT_MASTER


def _place(options: Mapping[str, str]) -> str:
    return "spark-submit" if is_submitted(os.environ) else classic_settings(options)["spark.master"]


def _join_connect(remote: str, options: Mapping[str, str]) -> tuple[SparkSession, bool]:
    require_answer(remote)
    builder = SparkSession.builder.remote(remote)
    for key, value in _given(options).items():
        builder = builder.config(key, value)
    return builder.create(), True


def _start_classic(options: Mapping[str, str], preloaded: Sequence[str], heaps: int) -> tuple[SparkSession, bool]:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active.newSession(), False
    if is_submitted(os.environ):
        settings = _given(options)
    else:
        settings = _with_class_archive(classic_settings(options, preloaded, heaps))
        require_answer(settings["spark.master"])
        prepare_environment(settings, os.environ)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with filtered_children(), _own_interrupt():
        return builder.getOrCreate(), True


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keep our handler of SIGINT: a SparkContext replaces it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def classic_settings(options: Mapping[str, str], preloaded: Sequence[str] = (), heaps: int = 1) -> dict[str, str]:
    """All settings of a classic session: the defaults, then `options`. On this machine, also what workers need."""
    master = master_of(options)
    settings = dict(_DEFAULTS)
    if master.startswith("local"):
        settings |= _LOCAL_DEFAULTS
        settings[f"spark.executorEnv.{PRELOADED}"] = ",".join(preloaded)
        settings[f"spark.executorEnv.{HEAPS}"] = str(heaps)
    settings |= _given(options)
    settings["spark.master"] = master
    settings["spark.driver.extraJavaOptions"] = _java_options(
        settings.get("spark.driver.extraJavaOptions", ""), is_local=master.startswith("local")
    )
    return settings


def _with_class_archive(settings: dict[str, str]) -> dict[str, str]:
    if not settings["spark.master"].startswith("local"):
        return settings
    key = "spark.driver.extraJavaOptions"
    return settings | {key: " ".join((settings[key], *class_archive_options(*found_java(os.environ), settings)))}


def _java_options(given: str, *, is_local: bool) -> str:
    """Java's options: our defaults, then the given ones. If two contradict each other, Java takes the last."""
    options = [given]
    if is_local:
        options = [_LOCAL_JAVA, *(() if _COLLECTOR.search(given) else (_LOCAL_COLLECTOR,)), given]
    if "log4j2.configurationFile" not in given:
        logging = importlib.resources.files("archiver.engine") / "log4j2.properties"
        options.append(f"-Dlog4j2.configurationFile={logging}")
    return " ".join(filter(None, options))


def prepare_environment(settings: Mapping[str, str], environment: MutableMapping[str, str]) -> None:
    """Set what Spark reads only from the environment, unless it is set: its own address, and our interpreter."""
    if settings["spark.master"].startswith("local"):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key not in ("master", "remote")}
