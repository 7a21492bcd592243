"""Settings of a classic Spark session."""

from __future__ import annotations

import importlib.resources
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence

from archiver.engine.class_archive import class_archive_options
from archiver.engine.java import found_java
from archiver.engine.worker_daemon import HEAPS, PRELOADED

DEFAULT_MASTER = "local[*]"
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "archiver.engine.worker_daemon",
}
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -Xms64m"
"""The driver's JVM only schedules a few tasks and sees no records. Its optimising compiler cost more time than all its
work. Its heap starts at a 64th of the machine's memory by default, and fills that before the first collection.
"""
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
    """`spark-submit` has started the JVM."""
    return "PYSPARK_GATEWAY_PORT" in environment


def runs_here(options: Mapping[str, str]) -> bool:
    if "remote" in options or is_submitted(os.environ):
        return False
    return re.match(r"local(\[|$)", master_of(options)) is not None


def master_of(options: Mapping[str, str]) -> str:
    return options.get("master") or options.get("spark.master") or DEFAULT_MASTER


def classic_settings(options: Mapping[str, str], preloaded: Sequence[str] = (), heaps: int = 1) -> dict[str, str]:
    master = master_of(options)
    settings = dict(_DEFAULTS)
    if master.startswith("local"):
        settings |= _LOCAL_DEFAULTS
        settings[f"spark.executorEnv.{PRELOADED}"] = ",".join(preloaded)
        settings[f"spark.executorEnv.{HEAPS}"] = str(heaps)
    settings |= given(options)
    settings["spark.master"] = master
    settings["spark.driver.extraJavaOptions"] = _java_options(
        settings.get("spark.driver.extraJavaOptions", ""), is_local=master.startswith("local")
    )
    return settings


def with_class_archive(settings: dict[str, str]) -> dict[str, str]:
    if not settings["spark.master"].startswith("local"):
        return settings
    options = class_archive_options(*found_java(os.environ), settings)
    key = "spark.driver.extraJavaOptions"
    return settings | {key: " ".join((settings[key], *options))}


def _java_options(given: str, *, is_local: bool) -> str:
    """Given options come last: Java takes the last."""
    options = [given]
    if is_local:
        options = [_LOCAL_JAVA, *(() if _COLLECTOR.search(given) else (_LOCAL_COLLECTOR,)), given]
    if "log4j2.configurationFile" not in given:
        logging = importlib.resources.files("archiver.engine") / "log4j2.properties"
        options.append(f"-Dlog4j2.configurationFile={logging}")
    return " ".join(filter(None, options))


def prepare_environment(settings: Mapping[str, str], environment: MutableMapping[str, str]) -> None:
    """Spark reads these only from the environment."""
    if settings["spark.master"].startswith("local"):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def given(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key not in ("master", "remote")}
