"""Uploads, reads and deletes of objects."""

from __future__ import annotations

import pickle
import time
from io import BytesIO
from pathlib import Path

import pytest
from pyiceberg.io import load_file_io

from archiver.errors import ObjectMissing, StorageDenied, StorageError, StorageUnavailable
from archiver.storage.objects import ObjectStore
from archiver.storage.spool_file import SpoolFile
from archiver.storage.store_errors import may_be_expired, storage_error
from catalog.errors import FilesShared
from catalog.iceberg.deletion_gate import OwnFolder, TableObjects

OBJECTS = ObjectStore.of({})


def spooled(path: Path, data: bytes) -> SpoolFile:
    file = SpoolFile.create(path)
    with file.sink() as sink:
        sink.write(data)
    return file


def test_a_file_goes_up_whole(tmp_path: Path):
    data = bytes(range(256)) * 100_000
    source = spooled(tmp_path / "spooled", data)
    target = (tmp_path / "lake" / "a" / "b.parquet").as_uri()
    assert OBJECTS.upload(source, target, expected=len(data)) == len(data)
    assert OBJECTS.read(target) == data == load_file_io({}, target).new_input(target).open().read()
    assert OBJECTS.size(target) == len(data)
    assert source.path.read_bytes() == data


def test_upload_sends_the_written_file_not_its_name(tmp_path: Path):
    """A user with access to the folder can replace a waiting file by another file or a link."""
    target = (tmp_path / "b.parquet").as_uri()
    source = spooled(tmp_path / "spooled", b"ours")
    source.path.unlink()
    source.path.write_bytes(b"evil")
    OBJECTS.upload(source, target, expected=4)
    assert OBJECTS.read(target) == b"ours"


def test_a_file_that_somebody_wrote_to_does_not_go_up(tmp_path: Path):
    target = (tmp_path / "b.parquet").as_uri()
    source = spooled(tmp_path / "spooled", b"ours")
    with source.path.open("ab") as foreign:
        foreign.write(b"more")
    with pytest.raises(StorageError, match="not as long as it was written"):
        OBJECTS.upload(source, target, expected=4)
    assert not OBJECTS.exists(target)


def test_uploading_again_replaces(tmp_path: Path):
    target = (tmp_path / "b.parquet").as_uri()
    for number, data in enumerate((b"longer than before", b"short")):
        OBJECTS.upload(spooled(tmp_path / f"spooled-{number}", data), target)
        assert OBJECTS.read(target) == data


def test_existence(tmp_path: Path):
    target = (tmp_path / "x").as_uri()
    assert not OBJECTS.exists(target)
    OBJECTS.write(target, b"1")
    assert OBJECTS.exists(target)
    OBJECTS.delete(target, OwnFolder(tmp_path.as_uri()))
    OBJECTS.delete(target, OwnFolder(tmp_path.as_uri()))
    assert not OBJECTS.exists(target)


def test_deletion_passes_the_gate(tmp_path: Path):
    target = (tmp_path / "x").as_uri()
    OBJECTS.write(target, b"1")
    (listed,) = OBJECTS.list(tmp_path.as_uri())
    shared = TableObjects(lambda: {"gc.enabled": "false"}, "kafka.orders")
    with pytest.raises(FilesShared, match=r"gc\.enabled"):
        OBJECTS.delete(target, shared)
    with pytest.raises(FilesShared, match=r"gc\.enabled"):
        OBJECTS.delete_unchanged(listed, shared)
    assert OBJECTS.read(target) == b"1"


def test_existence_is_one_request_and_only_not_found_is_no(monkeypatch: pytest.MonkeyPatch):
    class Store:
        answer: Exception = FileNotFoundError(2, "nothing here")
        asked = 0

        def new_input(self, path: str) -> Store:
            return self

        def open(self) -> BytesIO:
            self.asked += 1
            raise self.answer

    store = Store()
    monkeypatch.setattr("archiver.storage.objects._file_io", lambda *_: store)
    assert not OBJECTS.exists("s3://lake/x")
    assert store.asked == 1
    store.answer = OSError(13, "AWS Error ACCESS_DENIED during HeadObject operation")
    with pytest.raises(StorageDenied):
        OBJECTS.exists("s3://lake/x")


def test_a_store_travels(tmp_path: Path):
    target = (tmp_path / "x").as_uri()
    copy = pickle.loads(pickle.dumps(ObjectStore.of({"s3.region": "us-east-1", "warehouse": None})))
    copy.write(target, b"1")
    assert copy.read(target) == b"1"
    assert copy == ObjectStore.of({"s3.region": "us-east-1"})


def test_secrets_are_not_shown():
    assert "hush" not in repr(ObjectStore.of({"s3.secret-access-key": "hush"}))


@pytest.mark.parametrize("call", ["read", "size", "open"])
def test_missing(tmp_path: Path, call: str):
    with pytest.raises(ObjectMissing, match="nothing-here"):
        getattr(OBJECTS, call)((tmp_path / "nothing-here").as_uri())


def test_a_store_that_does_not_answer_is_tried_again_then_named(tmp_path: Path):
    source = spooled(tmp_path / "spooled", b"1")
    store = ObjectStore.of(
        {
            "s3.endpoint": "http://127.0.0.1:1",
            "s3.region": "us-east-1",
            "s3.access-key-id": "a",
            "s3.secret-access-key": "b",
            "s3.connect-timeout": "1",
        },
        attempts=2,
    )
    began = time.monotonic()
    with pytest.raises(StorageUnavailable, match=r"s3://lake/x.*spooled") as failure:
        store.upload(source, "s3://lake/x")
    assert failure.value.retryable
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), StorageDenied),
        (FileNotFoundError("no"), ObjectMissing),
        (ConnectionResetError("no"), StorageUnavailable),
        (
            OSError(
                "When initiating multiple part upload for key 'x' in bucket 'b': AWS Error ACCESS_DENIED during "
                "CreateMultipartUpload operation: Access Denied."
            ),
            StorageDenied,
        ),
        (OSError("AWS Error UNKNOWN (HTTP status 403) during HeadObject operation: No response body."), StorageDenied),
        (OSError("AWS Error NO_SUCH_BUCKET during PutObject operation: gone"), ObjectMissing),
        (
            OSError("AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate."),
            StorageUnavailable,
        ),
        (OSError("AWS Error UNKNOWN (HTTP status 503) during PutObject operation"), StorageUnavailable),
        (OSError(28, "No space left on device"), StorageError),
        (OSError("GetProperties failed for 'x'. Azure Error: [AuthorizationFailure] 403 Server failed"), StorageDenied),
        (OSError("UploadFrom failed for 'x'. Azure Error: [ContainerNotFound] 404 The container"), ObjectMissing),
        (OSError("GetProperties failed. Azure Error: [ServerBusy] 503 The server is busy."), StorageUnavailable),
        (OSError("Azure Error: [] Fail to get a new connection for: http://x. Could not connect"), StorageUnavailable),
        (OSError("google::cloud::Status(PERMISSION_DENIED: Permanent error, no)"), StorageDenied),
        (OSError("google::cloud::Status(UNAVAILABLE: Retry policy exhausted)"), StorageUnavailable),
    ],
)
def test_failures_are_told_apart(error: Exception, kind: type[StorageError]):
    failure = storage_error(error, verb="upload", path="s3://lake/x")
    assert type(failure) is kind
    assert "s3://lake/x" in str(failure)
    assert str(error) in str(failure)


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("AWS Error UNKNOWN (HTTP status 400) during HeadObject operation: No response body.", True),
        ("AWS Error UNKNOWN (HTTP status 400) during GetObject operation: ", True),
        ("AWS Error UNKNOWN (HTTP status 400) during PutObject operation: ExceptionName: ExpiredToken", True),
        (
            "AWS Error INTERNAL_FAILURE during GetObject operation: Failed to flush response stream (eof: 0, bad: 1)",
            True,
        ),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", True),
        ("AWS Error NO_SUCH_KEY during GetObject operation: gone", False),
        ("AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate.", False),
    ],
)
def test_what_storage_says_of_credentials_that_have_ended(text: str, *, may_be: bool):
    assert may_be_expired(storage_error(OSError(text), verb="read", path="s3://lake/x")) is may_be
