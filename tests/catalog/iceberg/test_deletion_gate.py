"""The gate of deletions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.errors import CatalogUnreachable, FilesShared
from catalog.iceberg.deletion_gate import (
    FRESH_SECONDS,
    NeverLanded,
    OwnFolder,
    TableObjects,
    delete,
    delete_all,
    is_shared,
    refuse_shared,
)

IO = PyArrowFileIO()
FORBIDDEN = {"gc.enabled": "false"}


def permit(properties: Callable[[], Mapping[str, str]], clock: Callable[[], float] = lambda: 0.0) -> TableObjects:
    return TableObjects(properties, "kafka.orders", clock=clock)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    return [(tmp_path / name).as_uri() for name in "abc"]


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("value", ["false", "FALSE", " FALSE ", "False\n", "no", "0", "", " true ", "yes"])
def test_every_value_but_true_forbids(value: str) -> None:
    """As `Boolean.parseBoolean`, which Iceberg's own expiry uses."""
    assert is_shared({"gc.enabled": value})


@pytest.mark.parametrize("properties", [{}, {"gc.enabled": "true"}, {"gc.enabled": "TRUE"}, {"gc.enabled": "True"}])
def test_true_and_nothing_allow(properties: Mapping[str, str]) -> None:
    assert not is_shared(properties)


def test_the_error_names_property_table_and_cure() -> None:
    with pytest.raises(FilesShared) as raised:
        refuse_shared({"gc.enabled": " FALSE "}, "kafka.orders", refused="nothing was erased")
    message = str(raised.value)
    assert message.startswith("nothing was erased: the table property `gc.enabled` is ` FALSE `")
    assert "ALTER TABLE kafka.orders SET TBLPROPERTIES ('gc.enabled' = 'true')" in message
    assert raised.value.retryable is False


def test_property_set_between_plan_and_deletion(tmp_path: Path, paths: list[str]) -> None:
    properties: dict[str, str] = {}
    now = [0.0]
    gate = permit(lambda: properties, lambda: now[0])
    delete(IO, paths[0], gate)
    properties |= FORBIDDEN
    now[0] += FRESH_SECONDS
    with pytest.raises(FilesShared):
        delete(IO, paths[1], gate)
    assert left(tmp_path) == ["b", "c"]


def test_property_set_among_many_deletions(tmp_path: Path, paths: list[str]) -> None:
    answers = [{}, FORBIDDEN]
    ticks = iter(range(100))
    delete_all(IO, paths, permit(lambda: answers.pop(0), lambda: float(next(ticks))))
    assert left(tmp_path) == ["b", "c"]
    assert answers == []


def test_property_that_was_just_read_is_not_read_again(paths: list[str]) -> None:
    reads: list[None] = []

    def properties() -> Mapping[str, str]:
        reads.append(None)
        return {}

    delete_all(IO, paths, permit(properties))
    assert len(reads) == 1


def test_nothing_is_deleted_while_the_table_cannot_be_read(tmp_path: Path, paths: list[str]) -> None:
    def away() -> Mapping[str, str]:
        raise CatalogUnreachable("gone for a while")

    assert delete_all(IO, paths, permit(away)) == tuple(paths)
    with pytest.raises(CatalogUnreachable):
        delete(IO, paths[0], permit(away))
    assert left(tmp_path) == ["a", "b", "c"]


def test_unreadable_table_is_read_once_by_all_workers(paths: list[str]) -> None:
    reads: list[None] = []

    def away() -> Mapping[str, str]:
        reads.append(None)
        raise CatalogUnreachable("gone for a while")

    gate = permit(away)
    for path in paths:
        with pytest.raises(CatalogUnreachable):
            delete(IO, path, gate)
    assert len(reads) == 1


def test_leftovers_of_attempts_are_those_that_are_named(tmp_path: Path, paths: list[str]) -> None:
    attempt = NeverLanded(paths[:2])
    delete_all(IO, paths[:2], attempt)
    with pytest.raises(RuntimeError, match="isn't known"):
        delete(IO, paths[2], attempt)
    assert left(tmp_path) == ["c"]


def test_own_folder_ends_at_its_border(tmp_path: Path, paths: list[str]) -> None:
    folder = OwnFolder(f"{tmp_path.as_uri()}/")
    delete(IO, paths[0], folder)
    for location in (tmp_path.as_uri(), f"{tmp_path.as_uri()}-2/a"):
        with pytest.raises(RuntimeError, match="is not below"):
            delete(IO, location, folder)
    assert left(tmp_path) == ["b", "c"]


def test_delete_all_goes_on_after_a_file_that_is_gone(tmp_path: Path, paths: list[str]) -> None:
    (tmp_path / "a").unlink()
    assert delete_all(IO, paths, permit(dict)) == ()
    assert left(tmp_path) == []
