"""Locations in Azure, as Iceberg's clients write them; and how long Google's client tries."""

from __future__ import annotations

import pickle
import time

import pytest
from pyiceberg.io import ADLS_ACCOUNT_NAME, PY_IO_IMPL, load_file_io

from catalog.iceberg import file_io
from catalog.iceberg.file_io import AzureFileIO, suited

LAKE = "abfss://lake@acme.dfs.core.windows.net/warehouse/x"


def client(location: str = LAKE, **properties: str) -> AzureFileIO:
    found = suited(load_file_io({name.replace("_", "-"): value for name, value in properties.items()}), location)
    assert isinstance(found, AzureFileIO)
    return found


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (LAKE, "lake/warehouse/x"),
        ("wasbs://lake@acme.blob.core.windows.net/x", "lake/x"),
        ("abfss://lake@acme.dfs.core.windows.net", "lake"),
        ("abfs://lake/warehouse/x", "lake/warehouse/x"),
        ("abfss://lake@acme.dfs.core.windows.net/a@b/c", "lake/a@b/c"),
    ],
)
def test_a_path_begins_with_the_container(location: str, path: str):
    assert client(location).parse_location(location)[2] == path


def test_the_account_is_the_locations():
    io = client()
    io.fs_by_scheme(*io.parse_location(LAKE)[:2])
    assert io.properties[ADLS_ACCOUNT_NAME] == "acme"


def test_credentials_of_another_account_are_not_used():
    io = client(**{ADLS_ACCOUNT_NAME: "other"})
    with pytest.raises(ValueError, match=r"in the account acme, and adls.account-name is other"):
        io.new_input(LAKE)


def test_googles_client_gives_up_soon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_io, "TRY_SECONDS", 1.0)
    nobody = {"gcs.service.host": "http://127.0.0.1:1", "gcs.oauth2.token": "x"}
    until = {"gcs.oauth2.token-expires-at": str(int(time.time() + 3_600) * 1_000)}
    io = suited(load_file_io(nobody | until, "gs://lake/x"), "gs://lake/x")
    began = time.monotonic()
    with pytest.raises(OSError, match="UNAVAILABLE"):
        io.new_input("gs://lake/x").exists()
    assert time.monotonic() - began < 30


def test_other_stores_and_other_clients_are_left():
    io = load_file_io({}, "s3://lake/x")
    assert suited(io, "s3://lake/x") is io
    chosen = load_file_io({PY_IO_IMPL: "pyiceberg.io.pyarrow.PyArrowFileIO"}, LAKE)
    assert suited(chosen, LAKE) is chosen


def test_a_client_travels():
    assert pickle.loads(pickle.dumps(client())).parse_location(LAKE)[2] == "lake/warehouse/x"
