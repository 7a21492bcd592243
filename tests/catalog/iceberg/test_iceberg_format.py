"""Unsupported Iceberg formats are refused first."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV3

from catalog.errors import CatalogUnreachable, FormatUpgraded
from catalog.iceberg.append import prepare
from catalog.iceberg.iceberg_format import check_writable
from catalog.iceberg.rest import in_our_words
from catalog.model import new_id
from tests.support.catalog.memory import MemoryCatalog, span


def test_upgraded_table_gets_no_commit_and_no_manifest(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path)
    check_writable(catalog.load())
    upgraded = catalog.metadata.model_dump() | {"format-version": 3, "next-row-id": 0}
    catalog.metadata = TableMetadataV3.model_validate(upgraded)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(FormatUpgraded, match=r"format v3.*stays staged.*\[topic='"):
        prepare(catalog.load(), (span(0, 0, 10),), change=None, commit_id=new_id())
    assert set(tmp_path.rglob("*")) == before


def test_column_of_unknown_type_is_named() -> None:
    field = {"id": 1, "name": "extra", "required": False, "type": "variant"}
    with pytest.raises(FormatUpgraded, match="drop these columns") as caught, in_our_words("http://c", "kafka.t"):
        Schema.model_validate({"type": "struct", "schema-id": 0, "fields": [field]})
    assert (caught.value.context["types"], caught.value.context["table"]) == (["variant"], "kafka.t")


def test_other_answers_that_are_not_icebergs_are_still_called_so() -> None:
    with pytest.raises(CatalogUnreachable, match="not one of the Iceberg REST protocol"), in_our_words("http://c"):
        Schema.model_validate({"type": "struct", "fields": [{"name": "a"}]})
