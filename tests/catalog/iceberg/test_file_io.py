"""Locations in Azure, and retries of Google's client."""

from __future__ import annotations

import pickle
import time

import pytest
from pyarrow.fs import FileSystem
from pyiceberg.io import ADLS_ACCOUNT_NAME, PY_IO_IMPL, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.iceberg import file_io
from catalog.iceberg.file_io import AzureFileIO, S3FileIO, suited

LAKE = "abfss://lake@acme.dfs.core.windows.net/warehouse/x"


def client(location: str = LAKE, **properties: str) -> AzureFileIO:
    azure = suited(load_file_io({name.replace("_", "-"): value for name, value in properties.items()}), location)
    assert isinstance(azure, AzureFileIO)
    return azure


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
    io = load_file_io({}, "file:///lake/x")
    assert suited(io, "file:///lake/x") is io
    chosen = load_file_io({PY_IO_IMPL: "pyiceberg.io.pyarrow.PyArrowFileIO"}, LAKE)
    assert suited(chosen, LAKE) is chosen


def test_a_client_travels():
    assert pickle.loads(pickle.dumps(client())).parse_location(LAKE)[2] == "lake/warehouse/x"


KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}
S3 = {"s3.endpoint": "http://127.0.0.1:1", "s3.region": "eu-west-1", **KEYS}


def s3_client(**properties: str) -> FileSystem:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    io = suited(load_file_io(S3 | given, "s3://lake/x"), "s3://lake/x")
    assert isinstance(io, S3FileIO)
    return io.fs_by_scheme("s3", "lake")


def test_tables_with_the_same_settings_share_a_client_of_s3():
    assert s3_client(archiver_offsets="1") is s3_client(archiver_offsets="2")
    assert s3_client() is not s3_client(**{"s3.session-token": "another"})
    assert s3_client() is not s3_client(**{"client.region": "eu-west-2", "s3.region": ""})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"s3.session-token": "token", "s3.connect-timeout": "7", "s3.request-timeout": "8"},
        {"s3.proxy-uri": "http://user:hush@127.0.0.1:2"},
        {"s3.force-virtual-addressing": "true"},
    ],
)
def test_s3_client_differs_from_pyicebergs_by_small_writes_alone(more: dict[str, str]):
    ours, theirs = s3_client(**more), PyArrowFileIO(S3 | more).fs_by_scheme("s3", "lake")
    (made,), (expected,) = ours.__reduce__()[1], theirs.__reduce__()[1]
    assert made == expected | {"allow_delayed_open": True}


def test_client_that_finds_credentials_keeps_finding_them(monkeypatch: pytest.MonkeyPatch):
    """Copied credentials would expire."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "own")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    s3 = suited(load_file_io(S3 | dict.fromkeys(KEYS), "s3://lake/x"), "s3://lake/x")
    assert isinstance(s3, S3FileIO)
    assert not s3.fs_by_scheme("s3", "lake").__reduce__()[1][0]["allow_delayed_open"]
