"""Searches equal scans."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from archiver.config.index_section import IndexedValue
from archiver.find.query import FindQuery
from archiver.find.report import FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.storage.parquet import writer
from archiver.storage.segment import RowRange
from archiver.storage.value_sets import SetLimits
from schema_mapping import Assignment, LedgerState, RowMapping, assign
from tests.archiver.conftest import Archive, Row
from tests.support.archive.lake import Lake, schema_of
from tests.support.archive.memory_index import LakeIndex
from tests.support.schemas.proto_text import compile_text

FIRST = "message M { int64 id = 1; string name = 2; }"
SECOND = "message M { int64 id = 1; string name = 2; double price = 3; }"
BROKEN = b"\x0a"
KEYS = (None, b"", b"a", b"ab", b"b" * 20, b"b" * 19 + b"c", b"\xff\xfe", b"\xff" * 17)
NAMES = ("", "a", "ab", "z" * 20, "z" * 19 + "\U0010ffff", "é")
IDS = (0, 1, 2, 126, 127)
HEADERS = ((b"h", b"1"), (b"h", None), (b"\xff", b"1"), (b"g", b""))
TIMES = (None, 0, 1_000, 1_001, 5_000, -5)
WITHOUT_TIME = -1
FILTERED = ("key.__raw__", "val.id", "val.name")


@dataclass(frozen=True)
class SentRecord:
    partition: int
    offset: int
    key: bytes | None
    id: int
    name: str
    value: bytes | None
    time: int
    headers: tuple[tuple[bytes, bytes | None], ...]

    @property
    def is_decoded(self) -> bool:
        return self.value is not None and self.value != BROKEN


Holds = Callable[[SentRecord], bool | None]
"""Whether a condition holds; None if its columns say nothing of the record."""


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[int, list[SentRecord]]]:
    ends: Counter[int] = Counter()
    files = []
    version = 1
    for _ in range(draw(st.integers(1, 6))):
        version = max(version, draw(st.integers(1, 2)))
        partition = draw(st.integers(0, 2))
        records = []
        for _ in range(draw(st.integers(1, 9))):
            offset = ends[partition] + draw(st.integers(0, 2))
            ends[partition] = offset + 1
            number, name = draw(st.sampled_from(IDS)), draw(st.sampled_from(NAMES))
            kind = draw(st.sampled_from(["typed", "typed", "typed", "typed", "broken", "null"]))
            value = {"typed": encoded(number, name), "broken": BROKEN, "null": None}[kind]
            time = draw(st.sampled_from(TIMES))
            records.append(
                SentRecord(
                    partition=partition,
                    offset=offset,
                    key=draw(st.sampled_from(KEYS)),
                    id=number,
                    name=name,
                    value=value,
                    time=WITHOUT_TIME if time is None else time,
                    headers=tuple(draw(st.lists(st.sampled_from(HEADERS), max_size=2))),
                )
            )
        files.append((version, records))
    return files


def encoded(number: int, name: str) -> bytes:
    head = b"" if not number else b"\x08" + bytes([number])
    text = name.encode()
    return head + (b"\x12" + bytes([len(text)]) + text if text else b"")


def quoted(octets: bytes) -> str:
    return "0x" + octets.hex()


INDEXED = ("key", IndexedValue(column="header:h", kind="bitmap"), "val.id", "val.name")
SIGNS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def on_keys(draw: st.DrawFn) -> tuple[str, Holds]:
    value = draw(st.sampled_from([key for key in KEYS if key is not None]))
    sign = draw(st.sampled_from([*SIGNS, "starts with", "ends with", "contains"]))
    return f"key {sign} {quoted(value)}", lambda it: it.key is not None and compared(sign, it.key, value)


@st.composite
def on_columns(draw: st.DrawFn) -> tuple[str, Holds]:
    number, name = draw(st.sampled_from((*IDS, 3, 9_999))), draw(st.sampled_from((*NAMES, "y", "zz")))
    sign = draw(st.sampled_from(["=", *SIGNS]))
    if draw(st.booleans()):
        return f"val.id {sign} {number}", lambda it: judged(it, compared(sign, it.id, number))
    sign = draw(st.sampled_from([sign, "starts with", "ends with", "contains"]))
    return f"val.name {sign} '{name}'", lambda it: judged(it, compared(sign, it.name, name))


@st.composite
def on_numbers(draw: st.DrawFn) -> tuple[str, Holds]:
    field = draw(st.sampled_from(["offset", "partition", "time"]))
    number = draw(st.sampled_from([0, 1, 2, 3, 5, 1_000, 1_001, 5_000, *([-1] if field == "time" else [])]))
    sign = draw(st.sampled_from(SIGNS))
    return f"{field} {sign} {number}", lambda it: compared(sign, getattr(it, field), number)


@st.composite
def on_bytes(draw: st.DrawFn) -> tuple[str, Holds]:
    octets = draw(st.sampled_from([b"", BROKEN, encoded(1, "a")]))
    if draw(st.booleans()):
        return f"value = {quoted(octets)}", lambda it: it.value is not None and it.value == octets
    name, value = draw(st.sampled_from([(b"h", b"1"), (b"\xff", b"1"), (b"g", b""), (b"h", b"2")]))
    return f"header[{quoted(name)}] = {quoted(value)}", lambda it: (name, value) in it.headers


NO_KEY: tuple[str, Holds] = ("key is null", lambda it: it.key is None)


def judged(record: SentRecord, holds: bool) -> bool | None:
    if record.value is None:
        return False
    return holds if record.is_decoded else None


def compared(sign: str, one: Any, other: Any) -> bool:
    answers: dict[str, Callable[[], bool]] = {
        "=": lambda: one == other,
        "!=": lambda: one != other,
        "<": lambda: one < other,
        "<=": lambda: one <= other,
        ">": lambda: one > other,
        ">=": lambda: one >= other,
        "starts with": lambda: one.startswith(other),
        "ends with": lambda: one.endswith(other),
        "contains": lambda: other in one,
    }
    return answers[sign]()


def negated(holds: Holds) -> Holds:
    return lambda it: None if (answer := holds(it)) is None else not answer


def every(terms: list[Holds]) -> Holds:
    def holds(record: SentRecord) -> bool | None:
        answers = [term(record) for term in terms]
        return False if False in answers else None if None in answers else True

    return holds


def some(terms: list[Holds]) -> Holds:
    return negated(every([negated(term) for term in terms]))


def combined(inner: st.SearchStrategy[tuple[str, Holds]]) -> st.SearchStrategy[tuple[str, Holds]]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        inner.map(lambda it: (f"not ({it[0]})", negated(it[1]))),
        several.map(lambda its: ("(" + " and ".join(f"({text})" for text, _ in its) + ")", every([h for _, h in its]))),
        several.map(lambda its: ("(" + " or ".join(f"({text})" for text, _ in its) + ")", some([h for _, h in its]))),
    )


CONDITIONS = st.recursive(
    st.one_of(on_keys(), on_columns(), on_columns(), on_numbers(), on_bytes(), st.just(NO_KEY)), combined, max_leaves=5
)
CHANGES = st.lists(
    st.sampled_from(
        [
            "retired",
            "foreign rewrite",
            "rewrite without metrics",
            "reversed rows",
            "positions",
            "equality",
            "vectors",
            "compaction",
            "erasure",
        ]
    ),
    max_size=3,
    unique=True,
)


INDEXING = st.lists(st.just("build"), max_size=3)
INJURIES = st.sampled_from([None, None, None, "cut", "flipped", "swapped", "gone"])


class SearchedTopic:
    def __init__(self, folder: Path, files: list[tuple[int, list[SentRecord]]]) -> None:
        first = assign(LedgerState(), value=compile_text(FIRST))
        second = assign(first.state, value=compile_text(SECOND))
        self.versions = first, second
        self.index: LakeIndex | None = None
        self.state, self.records = second.state, [record for _, records in files for record in records]
        self.lake = Lake(folder, first.row)
        schema = schema_of(first.row)
        self.lake.set_limits = SetLimits(share=1, smallest=1)  # small files have sets, too
        self.lake.bloom_filters = {schema.find_field(name).field_id: 0.01 for name in FILTERED}
        newest = 1
        for version, records in files:
            if version > newest:
                newest = version
                self.lake.evolve(schema_of(second.row))
            made = first if version == 1 else second
            start, end = records[0].offset, records[-1].offset + 1
            self.lake.add(made.row, rows(made, records), start, end, partition=records[0].partition)

    def change(self, kind: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        if kind == "retired":
            first = draw(st.integers(1, 9))
            self.lake.set(**{"archiver.first-offsets": json.dumps({"0": first})})
            self.records = [record for record in self.records if record.partition or record.offset >= first]
        elif kind in ("positions", "vectors"):
            self._delete_positions(kind, draw)
        elif kind == "equality":
            victim = draw(st.sampled_from(self.records))
            table = pa.table({"k": pa.array([victim.key], pa.binary())})
            identifier = self.lake.metadata.schema().find_field("key.__raw__").field_id
            field = pa.field("k", pa.binary(), metadata={"PARQUET:field_id": str(identifier)})
            self.lake.delete_equal(table.cast(pa.schema([field])), [identifier])
            self.records = [record for record in self.records if record.key != victim.key]
        elif kind in ("compaction", "erasure"):
            self._put_together(erases=kind == "erasure", draw=draw)
        elif {file.file_path for file in self.lake.files()} and not self.lake.metadata.current_schema_id:
            reverses = kind == "reversed rows"
            self.lake.rewrite(
                lambda table: table.take(list(reversed(range(table.num_rows)))) if reverses else table,
                with_metrics=kind != "rewrite without metrics",
                row_group_size=4,
            )

    def build_index(self, folder: Path) -> None:
        self.index = self.index or LakeIndex(self.lake, folder, *INDEXED, memory=1)
        report = self.index.build(registry=lambda *_: self, ledger=lambda *_: self.state)
        assert not report.failures

    def injure_index(self, kind: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        assert self.index is not None
        path = draw(st.sampled_from(self.index.objects()))
        data = path.read_bytes()
        match kind:
            case "cut":
                path.write_bytes(data[: draw(st.integers(0, len(data) - 1))])
            case "flipped":
                byte = draw(st.integers(0, len(data) - 1))
                path.write_bytes(data[:byte] + bytes([data[byte] ^ 1 << draw(st.integers(0, 7))]) + data[byte + 1 :])
            case "swapped":
                path.write_bytes(draw(st.sampled_from(self.index.objects())).read_bytes())
            case _:
                path.unlink()

    def _put_together(self, *, erases: bool, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        """Compact all files, or erase the records with a key, as the archiver does: the index goes with it."""
        if self.lake.metadata.current_schema_id:
            return
        key = draw(st.sampled_from(self.records)).key if erases else b"of no record"
        gone = {(it.partition, it.offset) for it in self.records if it.key == key}
        self.records = [record for record in self.records if record.key != key]
        left = {(it.partition, it.offset) for it in self.records}
        old = [file.file_path for file in self.lake.files()]

        def live(table: pa.Table) -> pa.Table:
            places = table.column("kafka").to_pylist()
            return table.filter(pa.array([(it["partition"], it["offset"]) in left for it in places]))

        fresh = self.lake.rewrite(live, row_group_size=4)
        if self.index is not None:
            for path in fresh:
                self.index.registry.inherit(old, path)
            self.index.erase([(partition, offset, offset + 1) for partition, offset in sorted(gone)])
            for path in self.index.objects():
                postings = pq.read_table(path).filter(pc.field("granules").is_null())
                exact = {(it["partition"], it["offset"]) for it in postings.to_pylist()}
                assert not exact & gone
                event("erased beside an index")

    def _delete_positions(self, kind: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        file = draw(st.sampled_from(self.lake.files()))
        content = pq.read_table(file.file_path.removeprefix("file://"), columns=["kafka"])
        position = draw(st.integers(0, content.num_rows - 1))
        kafka = content.column("kafka")[position].as_py()
        gone = kafka["partition"], kafka["offset"]
        (self.lake.delete_positions if kind == "positions" else self.lake.delete_by_vectors)(
            {file.file_path: [position]}
        )
        self.records = [record for record in self.records if (record.partition, record.offset) != gone]

    def row_mapping(self, version: int) -> RowMapping:
        return {made.row.schema_version: made.row for made in self.versions}[version]

    def search(self, query: FindQuery) -> Search:
        report = FindReport()

        def opens(bounded: Any) -> Any:
            options: dict[str, Any] = {"registry": lambda *_: self, "ledger": lambda *_: self.state, "bounded": bounded}
            return self.lake.archive(**options) if self.index is None else self.index.archive(**options)

        return Search(query=query, sources=[FindSource.open(query, opens, report)], report=report, parallel=3)

    def replayed(self, where: str) -> list[tuple[int, int]]:
        archive = self.lake.archive(registry=lambda *_: self, ledger=lambda *_: self.state)
        selected = SelectedRecords.of(archive, Selection.parse(where=where))
        ranges = [RowRange(partition=it, start_offset=archive.snapshot.first_offsets.get(it, 0)) for it in range(3)]
        batches = [batch for range_ in ranges for batch, _ in selected.read(range_)]
        return [(it["partition"], it["offset"]) for batch in batches for it in batch.to_pylist()]


def rows(made: Assignment, records: list[SentRecord]) -> pa.RecordBatch:
    plain = Archive(rows=made.row).batch(
        Row(
            offset=record.offset,
            partition=record.partition,
            key=record.key,
            value=None,
            headers=record.headers,
            timestamp=None if record.time == WITHOUT_TIME else record.time,
            schema_version=made.row.schema_version,
        )
        for record in records
    )
    values = made.row.value.decode(pa.array([record.value for record in records], pa.binary()))
    columns = [values if field.name == "val" else plain.column(field.name) for field in made.row.arrow_schema]
    return pa.RecordBatch.from_arrays(columns, schema=made.row.arrow_schema)


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "GROUP_ROWS", 3)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=tables(), condition=CONDITIONS, changes=CHANGES, data=st.data())
def test_find_equals_scan(
    files: list[tuple[int, list[SentRecord]]], condition: tuple[str, Holds], changes: list[str], data: st.DataObject
) -> None:
    text, holds = condition
    oldest_first, limit = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1, 3]))
    with tempfile.TemporaryDirectory() as folder:
        table = SearchedTopic(Path(folder), files)
        acts = [*changes, *data.draw(INDEXING)]
        for act in data.draw(st.permutations(acts)):
            if act == "build":
                table.build_index(Path(folder))
            elif table.records:
                table.change(act, data.draw)
        if table.index is not None and (injury := data.draw(INJURIES)) is not None:
            table.injure_index(injury, data.draw)
        for path in data.draw(st.lists(st.sampled_from(sorted(table.lake.values)), unique=True)):
            del table.lake.values[path]  # the registry knows nothing of it
        query = FindQuery.parse(where=text, oldest_first=oldest_first)
        search = table.search(query)
        records = [record for _, batch in search for record in batch.to_pylist()]
        sign = 1 if oldest_first else -1
        scanned = sorted(
            (record for record in table.records if holds(record)),
            key=lambda it: (sign * it.time, it.partition, sign * it.offset),
        )
        assert [(it["partition"], it["offset"]) for it in records] == [(it.partition, it.offset) for it in scanned]
        for record, sent in zip(records, scanned, strict=True):
            assert (record["key"], record["value"], record["timestamp"]) == (sent.key, sent.value, sent.time)
            assert [(it["key"], it["value"]) for it in record["headers"]] == [*sent.headers]
        assert table.replayed(text) == sorted((it.partition, it.offset) for it in scanned)
        assert search.report.unjudged == sum(holds(record) is None for record in table.records)
        assert table.search(query).count() == len(scanned)
        first = table.search(replace(query, limit=limit))
        offsets = [offset for _, batch in first for offset in batch.column("offset").to_pylist()]
        assert offsets == [it.offset for it in scanned][:limit]
        for reason in (*search.report.files_out, *+search.report.blocks_out):
            event(f"ruled out by {reason}")
