"""MinIO with a policy for encryption.

Only in `make catalogs`: MinIO takes minutes to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from catalog.iceberg.s3_writer import PART_BYTES
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.choice import CATALOG
from tests.support.catalog.java_catalog import java_catalog
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.minio_server import KMS_KEY, MinioServer, minio_server
from tests.support.servers.stack import Stack
from tests.support.storage.stores import BUCKET, minio_store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
    pytest.mark.skipif(CATALOG == "embedded", reason="`make catalogs` runs it: MinIO takes minutes to compile"),
]

ENCRYPTED = {"s3.sse.type": "kms", "s3.sse.key": KMS_KEY}
NULL_SSE = {
    "Action": ["s3:PutObject"],
    "Resource": [f"arn:aws:s3:::{BUCKET}/*"],
    "Condition": {"Null": {"s3:x-amz-server-side-encryption": "true"}},
}
"""An example of AWS: docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    with minio_server(tmp_path_factory.mktemp("minio")) as running:
        with running.connected() as client:
            client.make_bucket(BUCKET)
        yield running


@pytest.fixture(scope="module")
def encrypting(stack: Stack, server: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    store = replace(minio_store(server.limited(NULL_SSE), BUCKET), catalog=minio_store(server, BUCKET).catalog)
    with java_catalog(stack, tmp_path_factory.mktemp("catalog"), store) as running:
        yield running


def config_of(stack: Stack, topic: str, properties: dict[str, str]) -> Path:
    return stack.config({topic: {}}, archive={"journal": f"s3://{BUCKET}/_archiver/{topic}"}, catalog=properties)


def run(config: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--config", str(config)])


def test_all_commands_encrypt_what_they_write(encrypting: Stack, server: MinioServer) -> None:
    topic = encrypting.topic()
    config = config_of(encrypting, topic, ENCRYPTED)
    encrypting.produce(topic, *({"key": b"k%d" % (n % 5), "value": b"%d" % n} for n in range(40)))
    archive_once(config, topic, engine=InlineEngine())
    large = [{"key": b"large", "value": bytes(range(256)) * 4_000} for _ in range(3 * PART_BYTES // 1_024_000)]
    encrypting.produce(topic, *large, message_max_bytes=4_000_000)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, 1) == from_kafka(encrypting, topic, 1)
    for words in (
        ("check",),
        ("verify", topic),
        ("compact", topic, "--min-files", "2"),
        ("erase", topic, "--where", "key = 'k3'", "--yes"),
        ("expire", topic, "--before", "5", "--rows", "--yes"),
        ("orphans", topic),
        ("status", topic),
        ("verify", topic),
    ):
        done = run(config, *words)
        assert done.exit_code == 0, (words, done.output)
    keys = [record.key for record in from_archive(config, topic, 1)]
    assert b"k3" not in keys
    assert b"large" in keys
    _assert_encrypted(server, load_config(config).topic(topic).table.rpartition(".")[2], topic)


def _assert_encrypted(server: MinioServer, table: str, topic: str) -> None:
    """The archiver's objects have the key. The catalog writes `*.metadata.json` without it."""
    with server.connected() as client:
        names = [str(item.object_name) for item in client.list_objects(BUCKET, recursive=True)]
        written = [name for name in names if topic in name or (table in name and not name.endswith(".metadata.json"))]
        headers = {name: client.stat_object(BUCKET, name).metadata or {} for name in written}
    assert {name.rpartition(".")[2] for name in written} >= {"parquet", "avro"}
    assert any(name.startswith("_archiver/") for name in written)
    for name, values in headers.items():
        assert values.get("x-amz-server-side-encryption") == "aws:kms", name
        assert values["x-amz-server-side-encryption-aws-kms-key-id"].endswith(KMS_KEY), name


def test_writes_without_encryption_are_explained(encrypting: Stack) -> None:
    topic = encrypting.topic()
    encrypting.produce(topic, {"value": b"x"})
    config = config_of(encrypting, topic, {})
    done = run(config, "check")
    assert done.exit_code == 1
    assert "`s3.sse.type`" in done.output
    done = run(config, "archive", topic, "--once")
    assert done.exit_code == 1
    assert "`s3.sse.type`" in done.output, done.output


def test_an_unknown_key_is_explained(encrypting: Stack) -> None:
    done = run(config_of(encrypting, encrypting.topic(), ENCRYPTED | {"s3.sse.key": "no-such-key"}), "check")
    assert done.exit_code == 1
    assert "can't use the key that encrypts (kms:KeyNotFound)" in done.output, done.output
