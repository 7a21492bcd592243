"""Views in Trino and ClickHouse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from tests.support.archive import flat_rows
from tests.support.archive.job_runs import archive_once, read
from tests.support.archive.three_engines import plain
from tests.support.catalog.java_catalog import java_catalog
from tests.support.schemas.order_schema import ORDER_PROTO
from tests.support.servers import trino as trino_server
from tests.support.servers.clickhouse import Clickhouse
from tests.support.servers.clickhouse import clickhouse as running_clickhouse
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.interop

KINDS = ("flat", "latest", "errors")
Rows = list[dict[str, Any]]


def archived(stack: Stack, folder: Path) -> tuple[Path, str, Path]:
    proto = folder / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(2)
    stack.produce(topic, *flat_rows.orders(30))
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    archive_once(config, topic)
    proto.write_text(ORDER_PROTO.replace("string street = 1;", "string street = 1; string lane = 9;"))
    stack.produce(topic, *flat_rows.orders(3))
    archive_once(config, topic)
    return config, topic, proto


def asked(config: Path, topic: str, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["views", topic, "--config", str(config), *options])
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def options_of(kind: str, form: str) -> list[str]:
    if kind == "errors":
        return ["--errors", "--bytes", form]
    return [*(["--latest"] if kind == "latest" else []), "--bytes", form, "--exclude", "address_lane"]


def expected(kind: str, rows: Rows, form: str) -> Rows:
    match kind:
        case "flat":
            return [flat_rows.flat(row, flat_rows.FORMS[form]) for row in rows]
        case "latest":
            return flat_rows.latest(rows, flat_rows.FORMS[form])
        case _:
            return flat_rows.errors(rows, flat_rows.FORMS[form])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("views")


def test_trino_reads_the_view_that_spark_reads(stack: Stack, folder: Path) -> None:
    with java_catalog(stack, folder) as judged, trino_server.trino(judged, folder / "trino") as server:
        config, topic, _ = archived(judged, folder)
        rows = read(judged, config, topic).to_pylist()
        for kind in KINDS:
            for form in flat_rows.FORMS:
                done = asked(
                    config, topic, "--engine", "trino", "--apply", "--name", f"{kind}_{form}", *options_of(kind, form)
                )
                answer = server.rows(f"SELECT * FROM {done['view']}")
                names = [column["name"] for column in done["columns"]]
                shown = [dict(zip(names, row, strict=True)) for row in answer]
                assert positional(shown, from_trino) == positional(expected(kind, rows, form), from_structs), (
                    kind,
                    form,
                )


def positional(rows: Rows, read_value: Any) -> list[str]:
    """Return rows without struct field names, which Trino's client gives differently."""
    plain_rows = [
        {name: sorted((value or {}).items()) if name == "headers" else read_value(value) for name, value in row.items()}
        for row in rows
    ]
    ordered = sorted(plain_rows, key=lambda row: (row["kafka_partition"], row["kafka_offset"]))
    return [json.dumps(plain(row), sort_keys=True) for row in ordered]


def from_trino(value: Any) -> Any:
    match value:
        case dict():
            return sorted([from_trino(key), from_trino(item)] for key, item in value.items())
        case tuple() | list():
            return [from_trino(part) for part in value]
        case _:
            return value


def from_structs(value: Any) -> Any:
    match value:
        case dict():
            return [from_structs(part) for part in value.values()]
        case [(_, _), *_] if isinstance(value[0], tuple):
            return sorted([from_structs(key), from_structs(item)] for key, item in value)
        case list():
            return [from_structs(part) for part in value]
        case _:
            return value


@pytest.fixture(scope="module")
def clickhouse(stack: Stack) -> Iterator[Clickhouse]:
    servers, catalog = stack.endpoints, stack.catalog_properties
    with running_clickhouse() as server:
        server.run("SET allow_database_iceberg = 1, session_timezone = 'UTC'")
        server.run(
            f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{servers.catalog_uri}/v1', '{servers.access_key}',"
            f" '{servers.secret_key}') SETTINGS catalog_type = 'rest', warehouse = '{servers.warehouse}',"
            f" catalog_credential = '{catalog['credential']}', oauth_server_uri = '{catalog['oauth2-server-uri']}',"
            f" storage_endpoint = '{servers.s3_endpoint}', vended_credentials = false"
        )
        server.run("CREATE DATABASE flat")
        yield server


def test_clickhouse_reads_a_view_over_files_of_several_schemas(
    stack: Stack, folder: Path, clickhouse: Clickhouse
) -> None:
    config, topic, _ = archived(stack, folder)
    rows = read(stack, config, topic).to_pylist()
    for kind in KINDS:
        for form in flat_rows.FORMS:
            target = ("--namespace", "flat", "--name", f"{kind}_{form}")
            clickhouse.run(asked(config, topic, "--engine", "clickhouse", *target, *options_of(kind, form))["sql"])
            shown = clickhouse.query(f"SELECT * FROM flat.{kind}_{form}").to_pylist()
            assert without_nulls(shown) == without_nulls(expected(kind, rows, form)), (kind, form)


def without_nulls(rows: Rows) -> list[str]:
    """Return rows in ClickHouse's form: text is bytes, and null structs, lists and maps are empty."""
    made = [row | {"headers": sorted(dict(row["headers"] or {}).items())} for row in rows]
    ordered = sorted(made, key=lambda row: (row["kafka_partition"], row["kafka_offset"]))
    return [json.dumps(plain(_thin(row)), sort_keys=True) for row in ordered]


def _thin(value: Any) -> Any:
    match value:
        case dict():
            thin = {name: _thin(item) for name, item in value.items()}
            return thin if any(item is not None for item in thin.values()) else None
        case list() | tuple():
            return [_thin(item) for item in value] or None
        case str():
            return value.encode()
        case _:
            return value
