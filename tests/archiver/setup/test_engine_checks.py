"""Warnings about engines and catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.setup.engine_checks import look_at_engines
from archiver.setup.findings import CheckOutcome
from archiver.topics.catalog_upkeep import upkeep_note

CONFIG = """
[kafka]
"bootstrap.servers" = "localhost:1"
[registry]
dsn = "postgresql://localhost/none"
[catalog]
uri = "{uri}"
warehouse = "w"
[topics.deep]
value = {{ format = "protobuf", message = "M1", proto = "deep.proto"{more} }}
[topics.raw]
"""


def config(folder: Path, *, uri: str = "http://localhost:1", more: str = "") -> Path:
    messages = "".join(f"message M{level} {{ int32 a = 1; M{level + 1} m = 2; }}" for level in range(1, 16))
    (folder / "deep.proto").write_text(f'syntax = "proto3"; {messages} message M16 {{ int32 a = 1; }}')
    path = folder / "archiver.toml"
    path.write_text(CONFIG.format(uri=uri, more=more))
    return path


def test_columns_that_a_warehouse_refuses(tmp_path: Path) -> None:
    (finding,) = look_at_engines(load_config(config(tmp_path)))
    assert (finding.subject, finding.outcome) == ("topic deep", CheckOutcome.WARNING)
    assert "BigQuery takes at most 15 levels of nested records, and `val` has 16" in finding.detail
    assert "max_depth = 14" in finding.detail
    (finding,) = look_at_engines(load_config(config(tmp_path, more=", max_depth = 14")))
    assert (finding.outcome, finding.detail) == (CheckOutcome.OK, "no table exceeds a known limit of an engine")


def test_a_catalog_that_works_on_its_own(tmp_path: Path) -> None:
    path = config(tmp_path, uri="https://s3tables.eu-west-1.amazonaws.com/iceberg", more=", max_depth = 9")
    (finding,) = look_at_engines(load_config(path))
    assert (finding.subject, finding.outcome) == ("catalog", CheckOutcome.WARNING)
    assert "unreferencedDays" in finding.detail


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"uri": "https://s3tables.eu-west-1.amazonaws.com/iceberg"}, "S3 Tables"),
        ({"uri": "https://glue.x.amazonaws.com/iceberg", "warehouse": "123:s3tablescatalog/bucket"}, "S3 Tables"),
        ({"uri": "https://proxy", "rest.signing-name": "s3tables"}, "S3 Tables"),
        ({"uri": "https://dbc.cloud.databricks.com/api/2.1/unity-catalog/iceberg-rest"}, "Unity"),
        ({"uri": "https://biglake.googleapis.com/iceberg/v1/restcatalog"}, "BigLake"),
        ({"uri": "https://glue.eu-west-1.amazonaws.com/iceberg", "warehouse": "123"}, None),
        ({"uri": "http://polaris:8181/api/catalog"}, None),
        ({}, None),
    ],
)
def test_catalogs_are_known_by_their_address(settings: dict[str, str], word: str | None) -> None:
    note = upkeep_note(settings)
    assert (note is None) if word is None else (note is not None and word in note)
