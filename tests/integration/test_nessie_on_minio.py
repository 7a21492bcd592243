"""Real Nessie over a real MinIO whose policy denies writes without encryption: every command, and what is refused.

`make catalogs` runs it: MinIO takes minutes to compile, and Nessie is a download of 245 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from minio import Minio
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from catalog.iceberg.s3_writer import PART_BYTES
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.choice import CATALOG
from tests.support.catalog.nessie import nessie
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.minio_server import KMS_KEY, MinioServer, minio_server
from tests.support.servers.stack import Stack
from tests.support.storage.stores import BUCKET, minio_store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(CATALOG == "embedded", reason="`make catalogs` runs it: Nessie and MinIO take minutes to get"),
]

ENCRYPTED = {"s3.sse.type": "kms", "s3.sse.key": KMS_KEY}
NULL_SSE = {
    "Action": ["s3:PutObject"],
    "Resource": [f"arn:aws:s3:::{BUCKET}/*"],
    "Condition": {"Null": {"s3:x-amz-server-side-encryption": "true"}},
}
"""AWS's own example: docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    with minio_server(tmp_path_factory.mktemp("minio")) as running:
        running.client().make_bucket(BUCKET)
        yield running


@pytest.fixture(scope="module")
def there(stack: Stack, server: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Nessie and MinIO. The archiver's key may not write without encryption; Nessie's key may."""
    limited = server.limited(NULL_SSE)
    with nessie(stack, tmp_path_factory.mktemp("nessie"), server, minio_store(limited, BUCKET)) as running:
        yield running


@pytest.fixture
def client(server: MinioServer) -> Minio:
    return server.client()


def config_of(there: Stack, topic: str, **catalog: str) -> Path:
    named = {name.replace("_", "-"): value for name, value in catalog.items()}
    return there.config({topic: {}}, archive={"journal": f"s3://{BUCKET}/_archiver/{topic}"}, catalog=named)


def run(config: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--config", str(config)])


def test_every_command_works(there: Stack, client: Minio) -> None:
    topic = there.topic()
    config = config_of(there, topic, **ENCRYPTED)
    there.produce(topic, *({"key": b"k%d" % (n % 5), "value": b"%d" % n} for n in range(40)))
    archive_once(config, topic, engine=InlineEngine())
    large = [{"key": b"large", "value": bytes(range(256)) * 4_000} for _ in range(3 * PART_BYTES // 1_024_000)]
    there.produce(topic, *large, message_max_bytes=4_000_000)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, 1) == from_kafka(there, topic, 1)
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
    seen = [record.key for record in from_archive(config, topic, 1)]
    assert b"k3" not in seen
    assert b"large" in seen
    table = load_config(config).topic(topic).table.rpartition(".")[2]
    names = [item.object_name for item in client.list_objects(BUCKET, recursive=True)]
    mine = [name for name in names if (table in name and not name.endswith(".metadata.json")) or topic in name]
    assert any(name.endswith(".parquet") for name in mine)
    assert any(name.endswith(".avro") for name in mine)
    assert any(name.startswith("_archiver/") for name in mine)
    for name in mine:
        headers = client.stat_object(BUCKET, name).metadata
        assert headers["x-amz-server-side-encryption"] == "aws:kms", name
        assert headers["x-amz-server-side-encryption-aws-kms-key-id"].endswith(KMS_KEY), name


def test_a_write_without_encryption_is_explained(there: Stack) -> None:
    topic = there.topic()
    there.produce(topic, {"value": b"x"})
    config = config_of(there, topic)
    done = run(config, "check")
    assert done.exit_code == 1
    assert "`s3.sse.type`" in done.output
    done = run(config, "archive", topic, "--once")
    assert done.exit_code == 1
    error = json.loads(done.stderr.splitlines()[-1])
    assert "`s3.sse.type`" in json.dumps(error)


def test_an_unknown_key_is_explained(there: Stack) -> None:
    topic = there.topic()
    done = run(config_of(there, topic, **{**ENCRYPTED, "s3.sse.key": "no-such-key"}), "check")
    assert done.exit_code == 1
    assert "no-such-key" in done.output or "key" in done.output
