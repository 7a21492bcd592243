"""Engines read as few bytes as docs/engines/pruning.md says.

The store is behind a proxy that notes every range. `make interop RECORD=1` writes docs/engines/pruning.json and the
page's tables. Otherwise numbers must equal it.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from tests.support.archive.engine_findings import ENGINES
from tests.support.pruning import askers
from tests.support.pruning.layout import touched
from tests.support.pruning.orders import Orders, archived_orders
from tests.support.pruning.recorded import keep, kept
from tests.support.servers import trino
from tests.support.servers.stack import Stack
from tests.support.storage.counting_proxy import CountingProxy, counting_proxy

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

VERSIONS = {
    "spark": "pyspark",
    "duckdb": "duckdb",
    "pyiceberg": "pyiceberg",
    "polars": "polars",
    "clickhouse": "chdb-core",
    "datafusion": "datafusion",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    orders: Orders
    stack: Stack
    proxy: CountingProxy


@pytest.fixture(scope="module")
def watched(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("pruning")
    with pytest.MonkeyPatch.context() as monkeypatch, counting_proxy(stack.s3_endpoint, folder) as proxy:
        orders = archived_orders(stack, folder, monkeypatch)
        yield Watched(
            orders=orders, stack=Stack(replace(stack.endpoints, s3_endpoint=proxy.endpoint), folder), proxy=proxy
        )


@pytest.fixture
def asker(
    watched: Watched, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[askers.Asker]:
    lake, running = watched.stack, ExitStack()
    made: dict[str, Callable[[], askers.Asker]] = {
        "spark": lambda: running.enter_context(askers.spark_asker(lake)),
        "trino": lambda: askers.TrinoAsker(running.enter_context(trino.trino(lake, tmp_path_factory.mktemp("trino")))),
        "duckdb": lambda: askers.DuckdbAsker(lake),
        "pyiceberg": lambda: askers.PyicebergAsker(lake),
        "polars": lambda: askers.PolarsAsker(lake),
        "clickhouse": lambda: askers.ClickhouseAsker(lake, request.getfixturevalue("clickhouse")),
        "datafusion": lambda: askers.DatafusionAsker(lake),
    }
    with running:
        yield made[request.param]()


@pytest.mark.parametrize(("by", "asker"), [(name, name) for name in ENGINES], indirect=["asker"], ids=list(ENGINES))
def test_engines_read_no_more_than_the_docs_tell(watched: Watched, by: str, asker: askers.Asker) -> None:
    orders = watched.orders
    outcomes: dict[str, Any] = {}
    for question, needed in orders.questions.items():
        mark = watched.proxy.mark()
        assert asker.ask(orders.table, question) == needed.answer, question.title
        outcomes[question.title] = asdict(touched(orders.files, watched.proxy.since(mark), question.columns))
    version = trino.VERSION if by == "trino" else importlib.metadata.version(VERSIONS[by])
    if os.environ.get("ARCHIVER_RECORD"):
        least = {
            asked.title: {"files": parts.files, "groups": parts.groups} for asked, parts in orders.questions.items()
        }
        keep(by, version, asdict(orders.whole), least, outcomes)
    documented = kept()
    assert documented["table"] == asdict(orders.whole) | {"kilobytes": pytest.approx(orders.whole.kilobytes, rel=0.01)}
    assert documented["versions"][by] == version
    for title, numbers in outcomes.items():
        limits = documented["questions"][title][by]
        assert (numbers["groups"], numbers["files"]) == (limits["groups"], limits["files"]), title
        assert numbers["kilobytes"] <= 2 * limits["kilobytes"] + 500, title
