"""The judges notice each wrong part.

Page indexes and page headers keep their size.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.compact_thrift import BINARY, BOOL, I32, I64, LIST, STRUCT, Fields, packed
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.thrift_reader import read_struct
from tests.support.storage import parquet_layout as at
from tests.support.storage.large_groups import batch
from tests.support.storage.parquet_judges import PAGE_ROWS, ArrowWriter, judge, written
from tests.support.storage.parquet_layout import Chunk, Layout
from tests.support.storage.parquet_reads import judge_reads

ROWS: Final = PAGE_ROWS + 500
COLUMNS: Final = {
    "number": pa.array([n * 7 for n in range(ROWS)], pa.int64()),
    "text": pa.array([None if n % 3 == 0 else f"text {n % 1000}" for n in range(ROWS)]),
    "listed": pa.array([[n % 50, None][: n % 3] for n in range(ROWS)], pa.list_(pa.int32())),
}
BATCH: Final = batch(COLUMNS)
NUMBER, TEXT, LISTED = range(3)
PLANS: Final = [
    ColumnPlan(leaf=leaf, encoding=encoding, level=1, has_statistics=True, filter_size=size)
    for leaf, encoding, size in zip(
        leaves_of(BATCH.schema),
        (Encoding.DIFFERENCES, Encoding.DICTIONARY, Encoding.PLAIN),
        (1 << 15, 1 << 12, 0),
        strict=True,
    )
]
RIGHT: Final = written(FileWriter, BATCH.schema, [[BATCH]], PLANS, [NUMBER])
ARROWS: Final = written(ArrowWriter, BATCH.schema, [[BATCH]], PLANS, [NUMBER])
WRONG: Final = (AssertionError, OSError)


def judged(data: bytes) -> None:
    judge(data, ARROWS, [pa.Table.from_batches([BATCH])], PLANS)


def test_what_is_right_is_called_right() -> None:
    judged(RIGHT)
    judge_reads(RIGHT, ARROWS, [pa.Table.from_batches([BATCH])])


def opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: opened(item) for field, item in value.items()}
    if isinstance(value, tuple):
        kind, listed = value
        return kind, [opened(listed[position]) for position in range(len(listed))]
    return bytes(value) if isinstance(value, memoryview) else value


def with_footer(data: bytes, change: Callable[[Fields], object]) -> bytes:
    end = FileEnd.read(io.BytesIO(data))
    assert end.footer_start is not None
    footer = opened(read_struct(end.footer)[0])
    change(footer)
    return data[: end.footer_start - 12] + FileEnd.of_footer(packed(footer)).with_checksum


def with_struct(data: bytes, start: int, change: Callable[[Fields], None]) -> bytes:
    fields, end = read_struct(memoryview(data), start)
    changed = opened(fields)
    change(changed)
    made = packed(changed)
    assert len(made) == end - start, "another size"
    assert made != data[start:end], "nothing was changed"
    return data[:start] + made + data[end:]


def chunk(fields: Fields, column: int) -> Fields:
    result: Fields = fields[4, LIST][1][0][1, LIST][1][column]
    return result


def metadata(column: int, field: tuple[int, int], value: Any) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        result = chunk(footer, column)[3, STRUCT]
        assert result[field] != _new(value, result[field])
        result[field] = _new(value, result[field])

    return change


def statistics(column: int, field: tuple[int, int], value: Any) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        result = chunk(footer, column)[3, STRUCT][12, STRUCT]
        assert result[field] != _new(value, result[field])
        result[field] = _new(value, result[field])

    return change


def _new(value: Any, before: Any) -> Any:
    return value(before) if callable(value) else value


def group(field: tuple[int, int], value: Any) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        result = footer[4, LIST][1][0]
        result[field] = _new(value, result[field])

    return change


def element(place: int, field: tuple[int, int], value: Any) -> Callable[[Fields], None]:
    def change(footer: Fields) -> None:
        assert footer[2, LIST][1][place].get(field) != value
        footer[2, LIST][1][place][field] = value

    return change


def listed(place: int, value: Any) -> Callable[[tuple[int, list[Any]]], tuple[int, list[Any]]]:
    def change(before: tuple[int, list[Any]]) -> tuple[int, list[Any]]:
        kind, values = before
        return kind, [_new(value, item) if number == place else item for number, item in enumerate(values)]

    return change


def more(number: int) -> int:
    return number + 1


FOOTERS: Final[dict[str, Callable[[Fields], object]]] = {
    "highest number": statistics(NUMBER, (5, BINARY), (7 * ROWS).to_bytes(8, "little")),
    "lowest number": statistics(NUMBER, (6, BINARY), (1).to_bytes(8, "little")),
    "deprecated number": statistics(NUMBER, (1, BINARY), bytes(8)),
    "highest text": statistics(TEXT, (5, BINARY), b"text 998"),
    "nulls": statistics(TEXT, (3, I64), more),
    "exactness": statistics(TEXT, (7, BOOL), lambda _: False),
    "no statistics": lambda footer: chunk(footer, TEXT)[3, STRUCT].pop((12, STRUCT)),
    "values": metadata(LISTED, (5, I64), more),
    "unpacked size": metadata(NUMBER, (6, I64), more),
    "encodings": metadata(NUMBER, (2, LIST), (I32, [0, 3])),
    "one encoding more": metadata(NUMBER, (2, LIST), (I32, [5, 3, 8])),
    "codec": metadata(NUMBER, (4, I32), 0),
    "path": metadata(NUMBER, (3, LIST), (BINARY, [b"numbers"])),
    "pages of an encoding": metadata(TEXT, (13, LIST), listed(1, lambda struct: struct | {(3, I32): 7})),
    "repetition levels": metadata(LISTED, (16, STRUCT), lambda struct: struct | {(2, LIST): (I64, [ROWS, 0])}),
    "definition levels": metadata(LISTED, (16, STRUCT), lambda struct: struct | {(3, LIST): (I64, [0, 0, 0, ROWS])}),
    "bytes of texts": metadata(TEXT, (16, STRUCT), lambda struct: struct | {(1, I64): 5}),
    "place of the filter": metadata(NUMBER, (14, I64), more),
    "size of the filter": metadata(NUMBER, (15, I32), lambda size: size - 1),
    "no filter": lambda footer: [chunk(footer, TEXT)[3, STRUCT].pop(value) for value in ((14, I64), (15, I32))],
    "no dictionary": lambda footer: chunk(footer, TEXT)[3, STRUCT].pop((11, I64)),
    "no column index": lambda footer: [chunk(footer, TEXT).pop(value) for value in ((6, I64), (7, I32))],
    "rows of a group": group((3, I64), more),
    "bytes of a group": group((2, I64), more),
    "start of a group": group((5, I64), more),
    "sorting": group((4, LIST), listed(0, lambda struct: struct | {(1, I32): TEXT})),
    "sorting downwards": group((4, LIST), listed(0, lambda struct: struct | {(2, BOOL): True})),
    "id": element(1, (9, I32), 77),
    "optional": element(1, (3, I32), 0),
    "no text": element(2, (10, STRUCT), {(12, STRUCT): {}}),
    "name": element(1, (4, BINARY), b"numbers"),
    "rows": lambda footer: footer.update({(3, I64): ROWS + 1}),
    "version": lambda footer: footer.update({(1, I32): 1}),
    "writer": lambda footer: footer.update({(6, BINARY): b"archiver"}),
    "pairs": lambda footer: footer[5, LIST][1].pop(),
    "orders": lambda footer: footer[7, LIST][1].pop(),
}


@pytest.mark.parametrize("change", FOOTERS.values(), ids=FOOTERS)
def test_the_judge_notices_another_footer(change: Callable[[Fields], object]) -> None:
    wrong = with_footer(RIGHT, change)
    assert wrong != RIGHT
    with pytest.raises(WRONG):
        judged(wrong)


def index(column: int, which: tuple[int, int], field: tuple[int, int], value: Any) -> bytes:
    start = Layout(RIGHT).chunks[0][column].said[which[0]]
    return with_struct(RIGHT, start, lambda fields: fields.update({field: _new(value, fields[field])}))


def location(place: int, field: tuple[int, int], value: Any) -> Any:
    return listed(place, lambda struct: struct | {field: _new(value, struct[field])})


INDEXES: Final[dict[str, tuple[int, tuple[int, int], tuple[int, int], Any]]] = {
    "page of nulls": (NUMBER, at.COLUMN_INDEX, (1, LIST), listed(1, lambda _: True)),
    "lowest": (NUMBER, at.COLUMN_INDEX, (2, LIST), listed(0, b"\1" + bytes(7))),
    "highest": (TEXT, at.COLUMN_INDEX, (3, LIST), listed(0, b"text 998")),
    "order": (NUMBER, at.COLUMN_INDEX, (4, I32), 0),
    "other order": (NUMBER, at.COLUMN_INDEX, (4, I32), 2),
    "nulls": (TEXT, at.COLUMN_INDEX, (5, LIST), listed(0, more)),
    "repetition levels": (LISTED, at.COLUMN_INDEX, (6, LIST), listed(0, lambda count: count - 1)),
    "definition levels": (LISTED, at.COLUMN_INDEX, (7, LIST), listed(0, more)),
    "place of a page": (NUMBER, at.OFFSET_INDEX, (1, LIST), location(1, (1, I64), more)),
    "size of a page": (NUMBER, at.OFFSET_INDEX, (1, LIST), location(0, (2, I32), more)),
    "first row": (NUMBER, at.OFFSET_INDEX, (1, LIST), location(1, (3, I64), lambda row: row - 1)),
    "bytes of texts": (TEXT, at.OFFSET_INDEX, (2, LIST), listed(0, more)),
}


@pytest.mark.parametrize("change", INDEXES.values(), ids=INDEXES)
def test_the_judge_notices_another_page_index(change: tuple[int, tuple[int, int], tuple[int, int], Any]) -> None:
    wrong = index(*change)
    with pytest.raises(WRONG):
        judged(wrong)


def details(kind: tuple[int, int], field: tuple[int, int], value: Any) -> Callable[[Fields], None]:
    return lambda header: header[kind].update({field: _new(value, header[kind][field])})


DATA, DICTIONARY = (5, STRUCT), (7, STRUCT)
HEADERS: Final[dict[str, tuple[int, int, Callable[[Fields], None]]]] = {
    "checksum": (NUMBER, 0, lambda header: header.update({(4, I32): header[4, I32] ^ 1})),
    "unpacked size": (NUMBER, 0, lambda header: header.update({(2, I32): header[2, I32] - 1})),
    "values": (NUMBER, 1, details(DATA, (1, I32), lambda count: count - 1)),
    "encoding": (NUMBER, 1, details(DATA, (2, I32), 0)),
    "encoding of levels": (NUMBER, 1, details(DATA, (3, I32), 4)),
    "encoding of the dictionary": (TEXT, 0, details(DICTIONARY, (2, I32), 2)),
    "kind": (TEXT, 0, lambda header: header.update({(1, I32): 1})),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_the_judge_notices_another_page_header(change: tuple[int, int, Callable[[Fields], None]]) -> None:
    column, page, how = change
    wrong = with_struct(RIGHT, Layout(RIGHT).chunks[0][column].pages[page].start, how)
    with pytest.raises((*WRONG, KeyError)):
        judged(wrong)


def flipped(place: int) -> bytes:
    return RIGHT[:place] + bytes([RIGHT[place] ^ 1]) + RIGHT[place + 1 :]


def places(chunks: Sequence[Chunk]) -> dict[str, int]:
    pages = {f"{chunk.name}, page {n}": page.end - 2 for chunk in chunks for n, page in enumerate(chunk.pages)}
    filters = {
        f"filter of {chunk.name}": chunk.metadata[at.FILTER_OFFSET] + chunk.metadata[at.FILTER_LENGTH] - 5
        for chunk in chunks
        if chunk.filter
    }
    return pages | filters | {"first byte": 0}


@pytest.mark.parametrize("place", (result := places(Layout(RIGHT).chunks[0])).values(), ids=result)
def test_the_judge_notices_another_byte(place: int) -> None:
    with pytest.raises(WRONG):
        judged(flipped(place))


@pytest.mark.parametrize("data", [RIGHT[:-9] + RIGHT[-8:], b"PAR1" + RIGHT, RIGHT[:4] + b"\0" + RIGHT[4:]])
def test_the_judge_notices_less_and_more(data: bytes) -> None:
    with pytest.raises((*WRONG, Exception)):
        judged(data)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("row", [0, ROWS - 1, 777])
def test_the_judges_notice_another_value_in_the_rows(name: str, row: int) -> None:
    values = COLUMNS[name].to_pylist()
    values[row] = {"number": -5, "text": "zz", "listed": [99]}[name]
    changed = batch(COLUMNS | {name: pa.array(values, COLUMNS[name].type)})
    ours = written(FileWriter, BATCH.schema, [[changed]], PLANS, [NUMBER])
    with pytest.raises(AssertionError):
        judge_reads(ours, ARROWS, [pa.Table.from_batches([BATCH])])
    with pytest.raises(AssertionError):
        judged(ours)


def test_judges_notice_other_batches_and_nulls_for_empty() -> None:
    empty = pa.array([[n % 50, None][: n % 3] or None for n in range(ROWS)], pa.list_(pa.int32()))
    for rest in ([BATCH.slice(0, ROWS - 1)], [BATCH, BATCH.slice(0, 1)], [batch(COLUMNS | {"listed": empty})]):
        ours = written(FileWriter, BATCH.schema, [rest], PLANS, [NUMBER])
        with pytest.raises(AssertionError):
            judge_reads(ours, ARROWS, [pa.Table.from_batches([BATCH])])
        with pytest.raises(AssertionError):
            judged(ours)


@pytest.mark.parametrize(
    "options",
    [{"level": None}, {"encoding": Encoding.PLAIN}, {"has_statistics": False}, {"filter_size": 0}],
    ids=str,
)
def test_the_judge_notices_another_plan(options: dict[str, Any]) -> None:
    plan = {"level": 1, "encoding": Encoding.DIFFERENCES, "has_statistics": True, "filter_size": 1 << 15} | options
    other_plans = [ColumnPlan(leaf=PLANS[0].leaf, **plan), *PLANS[1:]]
    wrong = written(FileWriter, BATCH.schema, [[BATCH]], other_plans, [NUMBER])
    with pytest.raises(AssertionError):
        judged(wrong)


def test_negative_zero_and_nan_are_told_from_others() -> None:
    kinds = ([0.0, float("nan")], [-0.0, float("nan")], [0.0, 1.0])
    leaves = leaves_of(pa.schema([("a", pa.float64())]))
    plans = [ColumnPlan(leaf=leaf, encoding=Encoding.PLAIN, level=None, has_statistics=False) for leaf in leaves]
    batches = [pa.record_batch({"a": pa.array(kind)}) for kind in kinds]
    files = [written(FileWriter, batch.schema, [[batch]], plans) for batch in batches]
    for position, file in enumerate(files):
        for value, rows in enumerate(batches):
            table = pa.Table.from_batches([rows])
            if position == value:
                judge_reads(file, file, [table])
            else:
                with pytest.raises(AssertionError):
                    judge_reads(file, file, [table])
