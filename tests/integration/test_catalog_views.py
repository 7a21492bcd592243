"""Views in the Java reference catalog."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner, Result

from archiver.archive.tables import CatalogTables
from archiver.cli.app import app
from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.support.archive import flat_rows
from tests.support.archive.job_runs import archive_once, read
from tests.support.catalog.choice import of_the_stacks_own_catalog
from tests.support.catalog.java_catalog import java_catalog
from tests.support.schemas.order_schema import ORDER_PROTO
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]


def views(config: Path, topic: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["views", topic, "--config", str(config), *options])


def applied(config: Path, topic: str, *options: str) -> dict[str, Any]:
    done = views(config, topic, "--apply", *options)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def archived(stack: Stack, folder: Path, text: str = ORDER_PROTO) -> tuple[Path, str, Path]:
    proto = folder / "order.proto"
    proto.write_text(text)
    topic = stack.topic(2)
    stack.produce(topic, *flat_rows.orders(20))
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    archive_once(config, topic)
    return config, topic, proto


@of_the_stacks_own_catalog("the Java catalog keeps views")
def test_a_catalog_without_views_is_told_and_what_to_do_instead(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived(stack, tmp_path)
    refused = views(config, topic, "--apply")
    assert refused.exit_code == 1
    assert json.loads(refused.stderr)["error"]["kind"] == "ViewsUnsupported"
    assert "--temporary" in refused.stderr
    assert views(config, topic, "--apply", "--engine", "duckdb").exit_code == 2


@pytest.mark.slow
def test_view_in_the_java_catalog_survives_a_schema_change(stack: Stack, tmp_path: Path, engine: SparkEngine) -> None:
    with java_catalog(stack, tmp_path) as judged:
        config, topic, proto = archived(judged, tmp_path)
        table = load_config(config).topic(topic).table
        name = f"{table}_flat"
        first = applied(config, topic)
        assert (first["view"], first["applied"]) == (name, "created")
        shown = [flat_rows.flat(row, bytes) for row in read(judged, config, topic).to_pylist()]
        assert flat_rows.texts(asked(engine, judged, name)) == flat_rows.texts(shown)
        assert applied(config, topic, "--engine", "trino")["applied"] == "unchanged"

        changed = ORDER_PROTO.replace("string customer = 2", "string buyer = 2; string customer = 20")
        proto.write_text(changed.replace("uint32 quantity = 2;", "uint32 quantity = 2; bool heavy = 9;"))
        judged.produce(topic, *flat_rows.orders(3))
        archive_once(config, topic)
        second = applied(config, topic)
        assert second["applied"] == "replaced"
        rows = read(judged, config, topic).to_pylist()
        by_offset = {row["kafka_offset"]: row for row in asked(engine, judged, name) if row["kafka_partition"] == 0}
        for row in rows:
            if row["kafka"]["partition"] == 0 and row["val"] is not None:
                assert by_offset[row["kafka"]["offset"]]["customer"] == row["val"]["buyer"]
                assert by_offset[row["kafka"]["offset"]]["val_customer"] == row["val"]["customer"]
        assert len(by_offset) == sum(row["kafka"]["partition"] == 0 for row in rows)

        for kind in ("latest", "errors"):
            assert applied(config, topic, f"--{kind}")["view"] == f"{table}_{kind}"
            assert asked(engine, judged, f"{table}_{kind}")
        view = load_catalog("judged", **judged.catalog_properties).load_view(name)
        assert {representation.root.dialect for representation in view.current_version().representations} == {
            "spark",
            "trino",
        }
        assert [field.doc for field in view.schema().fields if field.name == "customer"] == ["val.buyer"]

        assert CatalogTables(load_config(config)).topics() == (topic,)

        foreign = views(config, topic, "--apply", "--name", table.rpartition(".")[2])
        assert foreign.exit_code == 1
        assert "table has this name" in foreign.stderr


def asked(engine: SparkEngine, stack: Stack, view: str) -> list[dict[str, Any]]:
    session, catalog = engine.session, f"java_{stack.scratch.name.replace('-', '_')}"
    options = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".client.region": stack.endpoints.s3_region,
        ".cache-enabled": "false",
        **{f".{name}": value for name, value in stack.catalog_properties.items()},
    }
    for name, value in options.items():
        session.conf.set(f"spark.sql.catalog.{catalog}{name}", value)
    rows: list[dict[str, Any]] = session.table(f"{catalog}.{view}").toArrow().to_pylist()
    gc.collect()  # PySpark's sockets, while their warning is ignored
    return rows


def test_a_view_merges_a_changed_column_on_request(stack: Stack, tmp_path: Path) -> None:
    with java_catalog(stack, tmp_path) as judged:
        config, topic, proto = archived(judged, tmp_path, ORDER_PROTO.replace("uint64 id", "int64 id"))
        name = f"{load_config(config).topic(topic).table}_flat"
        applied(config, topic)
        proto.write_text(ORDER_PROTO.replace("uint64 id", "string id"))
        judged.produce(topic, *flat_rows.orders(3))
        archive_once(config, topic)

        def columns() -> set[str]:
            view = load_catalog("judged", **judged.catalog_properties).load_view(name)
            return {field.name for field in view.schema().fields}

        assert applied(config, topic)["applied"] == "replaced"
        assert {"id", "val_id"} <= columns()
        assert applied(config, topic, "--merge-changed")["applied"] == "replaced"
        assert "val_id" not in columns()
        assert applied(config, topic)["applied"] == "unchanged", "later runs keep the merged column"
