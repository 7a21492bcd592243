"""Changes of the table in a commit of records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import NestedField, StringType

from catalog.iceberg.append import prepare
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import new_id
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, change, schema, span

COLUMN = "write.metadata.metrics.column.val."


def rename_by_pyiceberg(catalog: MemoryCatalog) -> None:
    """pyiceberg leaves the properties of the old name, and Java refuses to change such a table."""
    renamed = schema(ID, NestedField(NOTE.field_id, "remark", StringType())).model_copy(update={"schema_id": 1})
    catalog.change(AddSchemaUpdate(schema=renamed), SetCurrentSchemaUpdate.model_validate({"schema-id": 1}))


def measured(catalog: MemoryCatalog) -> dict[str, str]:
    properties = catalog.metadata.properties.items()
    return {name.removeprefix(COLUMN): mode for name, mode in properties if name.startswith(COLUMN)}


@pytest.mark.parametrize("changes", [None, change(ID, NOTE)])
def test_commits_measure_columns_that_another_engine_renamed(tmp_path: Path, changes: SchemaChange | None) -> None:
    catalog = MemoryCatalog(tmp_path, ID, NOTE)
    rename_by_pyiceberg(catalog)
    assert measured(catalog) == {"id": "truncate(16)", "note": "truncate(16)"}
    catalog.apply(prepare(catalog.load(), [span(0, 0, 5)], change=changes, commit_id=new_id()))
    assert measured(catalog) == {"id": "truncate(16)", "remark": "truncate(16)"}
    assert catalog.load().schema.find_field(NOTE.field_id).name == "remark"


def test_commits_measure_a_renamed_column_of_kafka(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path, ID)
    text = catalog.load().schema.model_dump_json().replace('"name":"batch_start"', '"name":"first_offset"')
    renamed = Schema.model_validate_json(text).model_copy(update={"schema_id": 1})
    catalog.change(AddSchemaUpdate(schema=renamed), SetCurrentSchemaUpdate.model_validate({"schema-id": 1}))
    catalog.apply(prepare(catalog.load(), [span(0, 0, 5)], change=None, commit_id=new_id()))
    assert catalog.metadata.properties["write.metadata.metrics.column.kafka.first_offset"] == "full"
    assert "write.metadata.metrics.column.kafka.batch_start" not in catalog.metadata.properties


def test_commits_leave_properties_that_fit(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path, ID, NOTE)
    before = measured(catalog)
    attempt = prepare(catalog.load(), [span(0, 0, 5)], change=None, commit_id=new_id())
    assert not any("metrics" in str(update) for update in attempt.updates)
    catalog.apply(attempt)
    assert measured(catalog) == before
