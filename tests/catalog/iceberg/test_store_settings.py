"""Settings of stores: effect and values."""

from __future__ import annotations

import inspect
import re

import pytest
from pyiceberg import io
from pyiceberg.catalog import rest
from pyiceberg.io import pyarrow as pyarrow_io

from catalog.iceberg import store_settings
from catalog.iceberg.store_settings import CATALOG_KNOWN, KNOWN, StoreSettingError, WriteHeaders, check_store_settings

KMS = {"s3.sse.type": "kms"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"s3.sse.typ": "kms"}, "s3.sse.typ has no effect here: did you mean `s3.sse.type`"),
        ({"S3.SSE.type": "kms"}, "S3.SSE.type has no effect here: did you mean `s3.sse.type`"),
        ({"sse.type": "kms"}, "sse.type has no effect here: did you mean `s3.sse.type`"),
        ({"s3_endpoint": "x"}, "s3_endpoint has no effect here: did you mean `s3.endpoint`"),
        ({"s3a.endpoint": "x"}, "s3a.endpoint has no effect here: did you mean `s3.endpoint`"),
        ({"fs.s3a.server-side-encryption-algorithm": "SSE-KMS"}, "fs.s3a.server.*: set `s3.sse.type` to s3, kms"),
        ({"wharehouse": "x"}, "wharehouse has no effect here: did you mean `warehouse`"),
        ({"rest.sigv4-enable": "true"}, "did you mean `rest.sigv4-enabled`"),
        ({"glue.region": "x"}, "glue.region has no effect here: Glue is an Iceberg REST catalog"),
        ({"client.profile-name": "x"}, "AWS_PROFILE"),
        (
            {"spark.hadoop.fs": "x"},
            "no effect here: leave it out. docs/catalogs.md and docs/stores.md list the settings",
        ),
        ({"s3.sse.type": "custom"}, "SSE-C"),
        ({"s3.sse.type": "AES"}, "write none, s3, kms or dsse-kms"),
        ({"s3.sse.key": "k"}, "s3.sse.key .* needs `s3.sse.type`"),
        ({"s3.sse.key": "k", "s3.sse.type": "s3"}, "s3.sse.key .* needs `s3.sse.type`"),
        ({"s3.checksums": "never"}, "when_supported or when_required"),
        ({"s3.server-side-encryption": "aws:kms"}, "set `s3.sse.type`"),
        ({"s3.profile-name": "x"}, "AWS_PROFILE"),
        ({"adls.connection-string": "x"}, "adls.connection-string has no effect"),
        ({"s3.access-points.lake": "arn:aws:s3:eu-west-1:1:accesspoint/lake"}, "alias .* in the place of the bucket"),
        ({"s3.use-arn-region-enabled": "true"}, "alias .* in the place of the bucket"),
        ({"client.assume-role.arn": "x"}, "set `s3.role-arn`"),
        ({"warehouse": "s3://arn:aws:s3:eu-west-1:1:accesspoint/lake"}, "s3://arn:aws.*can't read an ARN.*alias"),
        (
            {"s3.role-arn": "x", "s3.access-key-id": "k"},
            "s3.role-arn can't be used with `s3.access-key-id`.*AWS_ACCESS",
        ),
        (KMS | {"s3.retry-strategy-impl": "x"}, "s3.retry-strategy-impl can't be used with `s3.sse.type`"),
        ({"s3.checksums": "when_required", "s3.anonymous": "true"}, "can't be used with `s3.checksums`"),
        (KMS | {"py-io-impl": "x"}, "s3.sse.type has no effect with `py-io-impl`"),
    ],
)
def test_settings_without_effect_are_refused_by_name(properties: dict[str, str], message: str):
    with pytest.raises(StoreSettingError, match=message):
        check_store_settings(properties)


@pytest.mark.parametrize(
    "properties",
    [
        {"uri": "http://x", "warehouse": "w", "rest.sigv4-enabled": "true", "header.X-Iceberg": "y"},
        {"warehouse": "arn:aws:s3tables:eu-west-1:1:bucket/lake"},
        {"s3.role-arn": "x", "s3.path-style-access": "true"},
        {"py-io-impl": "x", "s3.server-side-encryption": "aws:kms", "mine": "x"},
        {"uri": "http://x", "ssl.cabundle": "ca.pem", "auth.type": "google", "rest-page-size": "5", "prefix": "p"},
        {"adls.sas-token.acme.dfs.core.windows.net": "x"},
        {"s3.sse.type": "none", "s3.role-arn": "x"},
        KMS | {"s3.role-arn": "x"},
        {"s3.sse.type": "KMS", "s3.sse.key": "k", "s3.checksums": "when_supported"},
    ],
)
def test_settings_that_work(properties: dict[str, str]):
    check_store_settings(properties)


@pytest.mark.parametrize(
    "name",
    [
        *("io-impl", "catalog-impl", "metrics-reporter-impl", "cache-enabled", "cache.expiration-interval-ms"),
        *("rest.auth.type", "rest.client.connection-timeout-ms", "rest-metrics-reporting-enabled"),
        *("table-default.write.format.default", "table-override.gc.enabled", "token-refresh-enabled", "hf.token"),
        *(
            "glue.id",
            "dynamodb.table-name",
            "polaris.realm",
            "s3.write.tags.a",
            "s3.delete-enabled",
            "s3.retry.num-retries",
        ),
    ],
)
def test_settings_of_other_clients_are_left_out(name: str) -> None:
    with pytest.raises(
        StoreSettingError, match=f"^catalog: {name} has no effect here: .*leave (it|this setting) out"
    ) as error:
        check_store_settings({"uri": "http://x", name: "x"}, "catalog: ")
    assert "did you mean" not in str(error.value)


def test_a_role_of_the_second_client_needs_boto3(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_settings, "find_spec", lambda _: None)
    check_store_settings({"s3.role-arn": "x"})
    with pytest.raises(
        StoreSettingError, match=r"s3.role-arn beside `s3.sse.type` needs boto3: pip install '.*\[aws\]'"
    ):
        check_store_settings(KMS | {"s3.role-arn": "x"})


def test_every_setting_that_pyarrow_reads_is_known():
    """pyiceberg names settings in constants; `pyarrow.py` imports the ones that it reads."""
    names = {
        value
        for name, value in vars(pyarrow_io).items()
        if name.isupper() and getattr(io, name, None) == value and isinstance(value, str)
        if value.startswith(("s3.", "client.", "adls.", "gcs.", "hdfs."))
    }
    assert len(names) > 30
    assert names <= KNOWN


def test_every_setting_that_the_catalogs_client_reads_is_known():
    """pyiceberg's client looks settings up by constants. `auth` and `ssl` are nested, the session is no text."""
    source = inspect.getsource(rest)
    looked_up = set(re.findall(r"[pP]roperties(?:\.get\(|, )([A-Z][A-Z0-9_]+)\b", source))
    names = {value for name in looked_up if isinstance(value := getattr(rest, name, None), str)}
    assert len(names) >= 15
    assert names - {"auth", "ssl", "botocore_session", "format-version"} <= CATALOG_KNOWN | KNOWN | {
        "client.profile-name"
    }


def test_headers():
    usual = WriteHeaders.of({"s3.sse.type": "none"})
    assert usual.are_usual
    assert WriteHeaders.of({"s3.sse.type": "s3"}).algorithm == "AES256"
    assert WriteHeaders.of(KMS | {"s3.sse.key": "k"}) == WriteHeaders(algorithm="aws:kms", kms_key="k")
    assert not WriteHeaders.of({"s3.checksums": "when_required"}).are_usual
    assert "secret" not in repr(WriteHeaders.of(KMS | {"s3.sse.key": "secret"}))
