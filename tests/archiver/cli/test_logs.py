"""Log lines on standard error."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from archiver.cli.logs import logs_to_stderr, set_verbose
from archiver.errors import StorageUnavailable


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Iterator[None]:
    yield
    set_verbose(False)


@contextmanager
def heard(monkeypatch: pytest.MonkeyPatch, *, verbose: bool = False, as_json: bool = False) -> Iterator[io.StringIO]:
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    set_verbose(verbose)
    with logs_to_stderr(as_json=as_json):
        yield out


def speak() -> None:
    logging.getLogger("kafka.net.connection").error("refused, attempt 1")
    logging.getLogger("kafka.net.connection").info("connecting")
    logging.getLogger("pyiceberg.io").warning("falling back to s3://me:hunter2@b/x")
    logging.getLogger("archiver.commit").warning("old rows of %s stay", "orders")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.warn("a library is old", DeprecationWarning, stacklevel=1)


def test_only_we_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch) as out:
        speak()
    assert out.getvalue() == "WARNING: old rows of orders stay\n"


def test_all_warnings_are_heard_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch, verbose=True) as out:
        speak()
    text = out.getvalue()
    for part in ("ERROR kafka.net.connection: refused", "WARNING pyiceberg.io: falling back", "a library is old"):
        assert part in text
    assert "connecting" not in text
    assert "hunter2" not in text


def test_machines_are_told_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch, as_json=True) as out:
        speak()
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert (line["event"], line["level"], line["logger"]) == ("log", "warning", "archiver.commit")


@pytest.mark.parametrize("verbose", [False, True])
def test_a_warning_names_its_cause_in_its_line(monkeypatch: pytest.MonkeyPatch, verbose: bool) -> None:
    with heard(monkeypatch, verbose=verbose) as out:
        try:
            raise StorageUnavailable("no answer", store="s3://b")  # noqa: TRY301
        except StorageUnavailable:
            logging.getLogger("archiver.commit").warning("old rows stay", exc_info=True)
    assert out.getvalue().startswith(f"WARNING{' archiver.commit' if verbose else ''}: old rows stay")
    assert "StorageUnavailable" in out.getvalue()
    assert ("Traceback" in out.getvalue()) is verbose


def test_other_threads_write_as_the_command_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def speak_up() -> None:
        cause = StorageUnavailable("no answer", store="s3://b")
        logging.getLogger("archiver.commit").warning("old rows stay", exc_info=cause)
        logging.getLogger("pyiceberg.io").warning("falling back")

    with heard(monkeypatch, verbose=True) as out:
        thread = threading.Thread(target=speak_up)
        thread.start()
        thread.join()
    assert "StorageUnavailable" in out.getvalue().splitlines()[1]
    assert "falling back" in out.getvalue()


def test_an_error_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a bug: an observer that failed."""
    with heard(monkeypatch) as out:
        try:
            raise KeyError("x")  # noqa: TRY301
        except KeyError:
            logging.getLogger("archiver.observer").exception("an observer failed")
    assert "Traceback" in out.getvalue()


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(logging.getLogger().handlers)
    with heard(monkeypatch):
        assert len(logging.getLogger().handlers) == len(before) + 1
    assert logging.getLogger().handlers == before


def test_the_kafka_client_says_as_much_as_the_program_wants() -> None:
    """INFO appears if the application wants it. DEBUG shows credentials and never appears."""
    import archiver.kafka.cluster  # noqa: F401 - it sets the filters

    for name in ("kafka.net.connection", "kafka.protocol.parser"):
        logger = logging.getLogger(name)
        assert logger.level == logging.NOTSET
        record = logging.LogRecord(name, logging.DEBUG, __file__, 1, "SaslAuthenticate(password)", None, None)
        assert not logger.filter(record)
        record.levelno = logging.INFO
        assert logger.filter(record)
