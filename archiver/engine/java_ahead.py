"""Java for a Spark session on this machine, started while Python still imports what a job needs.

Python imports on one core, and Java takes about as long until it answers. PySpark joins a process that runs already as
it does under `spark-submit`: by a port and a secret. Java writes them to a file (Spark's `PythonGatewayServer`).
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from archiver.engine.class_archive import ready_archive_options, spark_folders
from archiver.engine.classic_settings import classic_settings, prepare_environment, runs_here, with_java_options
from archiver.engine.java import ChildLines, found_java
from schema_mapping.errors import ContextError

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - a variable's name
_PLACE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_START_SECONDS: Final = 60.0
"""How long Java may take until it listens. A session starts its own after that."""
_END_SECONDS: Final = 10.0
"""How long Java may take to remove its folder and end, before it is killed."""
_LOOK_SECONDS: Final = 0.02
_WITHOUT_INTERRUPTS: Final = ("/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"')
"""Starts a command that ignores SIGINT, as PySpark starts Java: it is for us, and Java ends after us."""

_OTHER_VARIABLES: Final = (
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_API_MODE",
    "SPARK_TESTING",
    "PYSPARK_SUBMIT_ARGS",
)
"""Variables by which PySpark starts something else, or Java fetches files as it starts."""
_OTHER_SETTINGS: Final = (
    "spark.remote",
    "spark.api.mode",
    "spark.archives",
    "spark.files",
    "spark.jars",
    "spark.submit.",
)
"""How settings begin that do the same."""
_WORKERS_OWN: Final = "spark.executorEnv."
"""How settings begin that only the workers' processes get, and that Java isn't started with."""


@dataclass(slots=True, kw_only=True)
class JavaAhead:
    """A Java process that waits for PySpark. `asked` are the settings it was started for, `settings` those it has.

    It ends by itself when this process does, as its standard input ends then.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    said: ChildLines
    asked: Mapping[str, str]
    settings: Mapping[str, str]
    _address: tuple[str, str] | None = None
    _reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        """Read where Java listens as soon as it says so: a file in a folder for temporary ones may go before a job."""
        self._reader = threading.Thread(target=self._read, name="java-ahead", daemon=True)
        self._reader.start()

    def is_ready(self) -> bool:
        """Wait until Java listens. False where it ended instead, or takes too long."""
        self._reader.join()
        return self._address is not None and self.process.poll() is None

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Have PySpark join the process inside the block. What Java says is shown after it, as if Spark started it.

        Call it once it `is_ready`. If the block fails, nothing of it is shown: the error gets its last lines as notes.
        """
        if self._address is None:
            raise ValueError("Java doesn't listen")
        os.environ[_PORT], os.environ[_SECRET] = self._address
        try:
            yield
        except BaseException as error:
            for line in self.said.drop():
                error.add_note(line)
            raise
        else:
            self.said.release()
        finally:
            for name in (_PORT, _SECRET):
                os.environ.pop(name, None)

    def give_up(self) -> None:
        """End the process. What it said is forgotten."""
        self.said.silence()
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._reader.join()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to Java, or to Spark's script with what that has started."""
        if self.process.poll() is None:
            with suppress(OSError):
                os.killpg(self.process.pid, number)

    def _read(self) -> None:
        """Keep the port and the secret, then remove the folder.

        The file has the port, the length of the secret, and the secret.
        """
        place = _place_in(self.folder)
        until = time.monotonic() + _START_SECONDS
        while not place.is_file() and self.process.poll() is None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        with suppress(OSError, struct.error, UnicodeDecodeError):
            data = place.read_bytes()
            port, size = struct.unpack_from(">ii", data)
            self._address = str(port), data[8 : 8 + size].decode()
        shutil.rmtree(self.folder, ignore_errors=True)


_WAITING: list[JavaAhead] = []
"""The process that was started and that no session joined yet, if there is one."""
_JOINED: list[JavaAhead] = []
"""Those that sessions joined: Java ends as soon as nobody holds the other end of its standard input."""


@contextmanager
def java_ahead(options: Mapping[str, str]) -> Iterator[None]:
    """Start Java for a session of `options` (the configuration's `[spark]`) that may start inside the block.

    Nothing is started where the session would be elsewhere, and nothing is said of mistakes: the session's own start
    does. A process that no session joined ends with the block.
    """
    with suppress(ContextError, OSError, RuntimeError, ValueError, subprocess.SubprocessError):
        _WAITING.extend(_launched(options))
    try:
        yield
    finally:
        while _WAITING:
            _WAITING.pop().give_up()


def take_java(settings: Mapping[str, str]) -> JavaAhead | None:
    """The process that was started for a session with these settings, once it listens. None where there is none."""
    if not _WAITING:
        return None
    java = _WAITING.pop()
    if java.asked != _of_java(settings) or not java.is_ready():
        java.give_up()
        return None
    _JOINED.append(java)
    return java


def _place_in(folder: Path) -> Path:
    """The file in which Java says where it listens."""
    return folder / "gateway"


def _launched(options: Mapping[str, str]) -> Iterator[JavaAhead]:
    """The process, as PySpark's `launch_gateway` would start it. None where another one would be started."""
    home = Path(os.environ.get("SPARK_HOME") or next(iter(spark_folders()), ""))
    script = home / "bin" / "spark-submit"
    if not runs_here(options) or not script.is_file() or _is_special(options, home):
        return
    asked = _of_java(classic_settings(options))
    archive = ready_archive_options(found_java(os.environ)[0], asked)
    if archive is None:
        return
    settings = with_java_options(asked, archive)
    environment = dict(os.environ)
    prepare_environment(settings, environment)
    folder = Path(tempfile.mkdtemp(prefix="archiver-java-"))
    try:
        process, said = _started([str(script), *_arguments(settings)], environment, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    yield JavaAhead(process=process, folder=folder, said=said, asked=asked, settings=settings)


def _is_special(options: Mapping[str, str], home: Path) -> bool:
    """Whether PySpark is there already, or starts something else, or Java may fetch files before it listens."""
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    return (
        "pyspark" in sys.modules
        or defaults.exists()
        or (home / "spark-distribution").exists()  # PySpark prefers it
        or any(name in os.environ for name in _OTHER_VARIABLES)
        or any(key.startswith(_OTHER_SETTINGS) for key in options)
    )


def _started(
    command: list[str], environment: dict[str, str], folder: Path
) -> tuple[subprocess.Popen[bytes], ChildLines]:
    """The process, and what it says. All of that goes to standard error: ours may be read to its end."""
    target = os.dup(2)
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603
            [*_WITHOUT_INTERRUPTS, *command],
            stdin=subprocess.PIPE,
            stdout=writer,
            stderr=writer,
            env=environment | {"SPARK_CONNECT_MODE": "0", _PLACE: str(_place_in(folder))},
            process_group=0,  # so that all that it starts can be ended with it
        )
    except BaseException:
        os.close(reader)
        os.close(target)
        raise
    finally:
        os.close(writer)
    return process, ChildLines(reader, target)


def _arguments(settings: Mapping[str, str]) -> list[str]:
    return [*(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")), "pyspark-shell"]


def _of_java(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if not key.startswith(_WORKERS_OWN)}
