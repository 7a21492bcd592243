"""Writes with encryption headers and without checksums."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io import OutputFile

from archiver.errors import StorageDenied, StorageError
from archiver.storage.objects import ObjectStore
from archiver.storage.spool_file import SpoolFile
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.iceberg.file_io import S3FileIO
from tests.support.storage.demanding_store import KMS_KEY, SSE, Demands, demanding_store

KEY = "arn:aws:kms:eu-west-1:1:key/2"
SMALL, LARGE = 1000, (25 << 20) + 3
ENCRYPTED = [
    ({"s3.sse.type": "s3"}, Demands(encryption="AES256")),
    ({"s3.sse.type": "kms"}, Demands(encryption="aws:kms")),
    ({"s3.sse.type": "kms", "s3.sse.key": KEY}, Demands(encryption="aws:kms", kms_key=KEY)),
    ({"s3.sse.type": "dsse-kms", "s3.sse.key": KEY}, Demands(encryption="aws:kms:dsse", kms_key=KEY)),
]


def spooled(path: Path, size: int) -> SpoolFile:
    file = SpoolFile.create(path)
    with file.sink() as sink:
        sink.write((bytes(range(256)) * (size // 256 + 1))[:size])
    return file


def write_half(file: OutputFile) -> None:
    with file.create() as stream:
        stream.write(b"half")
        raise RuntimeError


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
@pytest.mark.parametrize(("settings", "demands"), ENCRYPTED)
def test_uploads_request_encryption(tmp_path: Path, settings: dict[str, str], demands: Demands, size: int):
    source = spooled(tmp_path / "spooled", size)
    with demanding_store(demands) as server:
        store = ObjectStore.of(server.properties | settings)
        assert store.upload(source, "s3://lake/t/data/a b=é%.parquet") == size
        stored = server.objects["lake/t/data/a b=é%.parquet"]
        assert stored.data == source.path.read_bytes()
        assert (stored.headers.get(SSE), stored.headers.get(KMS_KEY)) == (demands.encryption, demands.kms_key)
        assert stored.parts == (3 if size == LARGE else 0)
        assert server.refused == []


def test_without_the_setting_the_policy_refuses(tmp_path: Path):
    with demanding_store(Demands(encryption="aws:kms")) as server:
        with pytest.raises(StorageDenied, match=r"a policy denies .*s3\.sse\.type"):
            ObjectStore.of(server.properties).upload(spooled(tmp_path / "spooled", SMALL), "s3://lake/x")
        assert server.refused == ["PUT 403"]


@pytest.mark.parametrize("status", [400, 500, 501])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_checksums_when_required(tmp_path: Path, status: int, size: int):
    source = spooled(tmp_path / "spooled", size)
    with demanding_store(Demands(checksum_status=status)) as server:
        plain = ObjectStore.of(server.properties, attempts=1)
        with pytest.raises(StorageError, match=r"s3\.checksums = .when_required"):
            plain.upload(source, "s3://lake/x")
        server.refused.clear()
        store = ObjectStore.of(server.properties | {"s3.checksums": "when_required"})
        in_worker = pickle.loads(pickle.dumps(store))
        assert in_worker.upload(source, "s3://lake/x") == size
        assert server.objects["lake/x"].data == source.path.read_bytes()
        assert server.refused == []


def test_small_objects_and_deletions():
    with demanding_store(Demands(encryption="aws:kms")) as server:
        store = ObjectStore.of(server.properties | {"s3.sse.type": "kms"})
        store.write("s3://lake/journal/x.json", b"{}")
        assert store.read("s3://lake/journal/x.json") == b"{}"
        store.delete("s3://lake/journal/x.json", OwnFolder("s3://lake/journal"))
        assert server.objects == {}  # nothing stands for the folder
        assert server.refused == []


def test_a_stream_that_fails_leaves_no_object():
    with demanding_store(Demands()) as server:
        file = S3FileIO(server.properties | {"s3.sse.type": "s3"}).new_output("s3://lake/x")
        with pytest.raises(RuntimeError):
            write_half(file)
        assert server.objects == {}
        with file.create() as stream:
            stream.write(b"whole")
            assert stream.tell() == len(b"whole")
        with pytest.raises(FileExistsError):
            file.create()


def test_a_token_of_the_environment_does_not_go_with_given_keys(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of somebody else")
    with demanding_store(Demands()) as server:
        ObjectStore.of(server.properties | {"s3.sse.type": "s3"}).write("s3://lake/x", b"1")
        assert "x-amz-security-token" not in server.objects["lake/x"].headers
        given = server.properties | {"s3.sse.type": "s3", "s3.session-token": "ours"}
        ObjectStore.of(given).write("s3://lake/y", b"1")
        assert server.objects["lake/y"].headers["x-amz-security-token"] == "ours"


def test_errors_say_what_the_store_answered():
    with demanding_store(Demands(encryption="aws:kms")) as server:
        store = ObjectStore.of(server.properties | {"s3.sse.type": "s3"})
        with pytest.raises(StorageDenied) as caught:
            store.write("s3://lake/x", b"1")
        cause = caught.value.context["cause"]
        assert "with an explicit deny in a resource-based policy" in cause
        assert "Debug source" not in cause
        assert not caught.value.retryable


def test_parquet_writers_of_pyarrow_take_the_stream(tmp_path: Path) -> None:
    table = pa.table({"x": range(5)})
    with demanding_store(Demands(encryption="aws:kms")) as server:
        io = S3FileIO({**server.properties, "s3.sse.type": "kms"})
        stream = io.new_output("s3://lake/t/data/x.parquet").create(overwrite=True)
        with stream, pq.ParquetWriter(stream, table.schema) as writer:
            writer.write(table)
        assert server.refused == []
        (tmp_path / "x.parquet").write_bytes(server.objects["lake/t/data/x.parquet"].data)
    assert pq.read_table(tmp_path / "x.parquet").equals(table)
