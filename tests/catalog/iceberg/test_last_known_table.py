"""Tables kept in the registry."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.last_known_table import LastKnownTable
from catalog.model import new_id
from tests.support.catalog.memory import TOPIC, MemoryCatalog, span

OWN = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "own", "s3.secret-access-key": "secret"}


@pytest.fixture
def table(tmp_path: Path) -> ArchiveTable:
    catalog = MemoryCatalog(tmp_path)
    done = commit(
        load=catalog.load,
        send=catalog.send,
        ranges=[span(0, 0, 5)],
        change=None,
        commit_id=new_id(),
        backoff=Backoff(pause=lambda _: None),
    )
    assert isinstance(done, Committed)
    return catalog.load()


def test_what_tasks_and_plans_need_is_kept(table: ArchiveTable) -> None:
    again = LastKnownTable.of(table, {}).table(TOPIC, {})
    for name in ("uuid", "location", "data_location", "properties", "offsets", "schema", "last_column_id"):
        assert getattr(again, name) == getattr(table, name)
    assert again.partitioning == table.partitioning
    assert again.iceberg.metadata.snapshots == []


@pytest.mark.parametrize(
    ("storage", "vended"),
    [
        (OWN, False),
        ({**OWN, "s3.region": "elsewhere"}, False),
        ({**OWN, "s3.access-key-id": "theirs", "s3.secret-access-key": "theirs"}, True),
        ({**OWN, "s3.session-token": "theirs"}, True),
        ({"gcs.oauth2.token": "theirs"}, True),
        ({"adls.sas-token.account": "theirs"}, True),
    ],
)
def test_credentials_of_the_catalogs_are_not_kept(
    table: ArchiveTable, storage: dict[str, str], *, vended: bool
) -> None:
    iceberg = table.iceberg
    io = type(iceberg.io)(storage)
    reached = ArchiveTable(topic=TOPIC, iceberg=Table(("kafka", "orders"), iceberg.metadata, "", io, catalog=None))  # type: ignore[arg-type]
    kept = LastKnownTable.of(reached, OWN)
    assert kept.vended is vended
    assert "theirs" not in kept.metadata
    if vended:
        with pytest.raises(CatalogUnreachable, match="credentials"):
            kept.table(TOPIC, OWN)
    else:
        assert kept.table(TOPIC, OWN).io_properties == OWN
