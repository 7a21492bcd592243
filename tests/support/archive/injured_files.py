"""Injuries of data files."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.archive.patient import Patient
from tests.support.storage.parquet_pages import page_headers, with_other_count, without_page


def flipped_page(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    with pq.ParquetFile(io.BytesIO(data)) as file:
        before, footer = file.read(), file.metadata
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(footer.num_columns)]
    while True:
        chunk = dice.choice([chunk for chunk in chunks if chunk.total_compressed_size])
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        position = dice.randrange(start, start + chunk.total_compressed_size)
        hurt = bytearray(data)
        hurt[position] ^= 1 << dice.randrange(8)
        if _reads_otherwise(bytes(hurt), before):
            patient.write(path, bytes(hurt))
            return f"{path} {chunk.path_in_schema} byte {position}"


def flipped_page_header(patient: Patient, seed: int) -> str:
    """Readers skip a page of unknown type, many silently."""
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    page = dice.choice([header for header in page_headers(data) if header.is_data])
    patient.write(path, without_page(data, page))
    return f"{path} {page.column} byte {page.start + 1}"


def changed_page_count(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    page = dice.choice([header for header in page_headers(data) if header.is_data])
    patient.write(path, with_other_count(data, page, dice.randrange(6)))
    return f"{path} {page.column} page at {page.start}"


def _reads_otherwise(data: bytes, before: pa.Table) -> bool:
    try:
        with pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True) as file:
            return not file.read().equals(before)
    except (OSError, pa.ArrowException):
        return True


def cut_file(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    patient.write(path, data[: dice.randrange(1, len(data))])
    return path


def missing_file(patient: Patient, seed: int) -> str:
    path = random.Random(seed).choice(patient.paths())
    patient.delete(path)
    return path


def swapped_files(patient: Patient, seed: int) -> str:
    left, right = random.Random(seed).sample(patient.paths(), 2)
    first, second = patient.read(left), patient.read(right)
    patient.write(left, second)
    patient.write(right, first)
    return f"{left} and {right}"


def doubled_file(patient: Patient, seed: int) -> str:
    target, source = random.Random(seed).sample(patient.paths(), 2)
    patient.write(target, patient.read(source))
    return f"{target} is {source}"


def _rewritten(patient: Patient, path: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Pages and checksums are right."""
    with pq.ParquetFile(io.BytesIO(patient.read(path))) as file:
        table = file.read()
        pairs = file.metadata.metadata
    rows = change(table.to_pylist())
    schema = table.schema.with_metadata({k: v for k, v in pairs.items() if k.startswith(b"archiver.")})
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), out, compression="zstd")
    patient.write(path, out.getvalue())


def dropped_row(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())

    def drop(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        gone = dice.randrange(len(rows))
        return rows[:gone] + rows[gone + 1 :]

    _rewritten(patient, path, drop)
    return path


def doubled_row(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    _rewritten(patient, path, lambda rows: [*rows, dice.choice(rows)])
    return path


def _changed(patient: Patient, seed: int, change: Callable[[dict[str, Any], random.Random], None]) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())

    def apply(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        change(dice.choice(rows), dice)
        return rows

    _rewritten(patient, path, apply)
    return path


def changed_header(patient: Patient, seed: int) -> str:
    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["headers"] = [{**row["headers"][0], "value": b"%d" % dice.randrange(1 << 30)}]

    return _changed(patient, seed, change)


def changed_value(patient: Patient, seed: int) -> str:
    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["val"]["__raw__"] = b"x%d" % dice.randrange(1 << 30)

    return _changed(patient, seed, change)


def changed_key(patient: Patient, seed: int) -> str:
    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["key"]["__raw__"] = dice.choice([None, b"other"])

    return _changed(patient, seed, change)


def changed_offset(patient: Patient, seed: int) -> str:
    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["kafka"]["offset"] += dice.choice([-1, 1, 1000])

    return _changed(patient, seed, change)


def changed_time(patient: Patient, seed: int) -> str:
    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["kafka"]["event_timestamp"] += timedelta(milliseconds=dice.randrange(1, 1000))

    return _changed(patient, seed, change)


def _footer_edited(patient: Patient, seed: int, edit: Callable[[dict[bytes, bytes], random.Random], None]) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    with pq.ParquetFile(io.BytesIO(patient.read(path))) as file:
        table, pairs = file.read(), dict(file.metadata.metadata)
    pairs = {name: value for name, value in pairs.items() if name.startswith(b"archiver.")}
    edit(pairs, dice)
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(pairs), out, compression="zstd")
    patient.write(path, out.getvalue())
    return path


def edited_footer_digest(patient: Patient, seed: int) -> str:
    def edit(pairs: dict[bytes, bytes], dice: random.Random) -> None:
        pairs[b"archiver.digest"] = b"%032x" % dice.getrandbits(128)

    return _footer_edited(patient, seed, edit)


def edited_footer_place(patient: Patient, seed: int) -> str:
    def edit(pairs: dict[bytes, bytes], dice: random.Random) -> None:
        name = dice.choice([b"start-offset", b"end-offset", b"partition", b"topic", b"cluster-id", b"schema-version"])
        key = b"archiver." + name
        if name in (b"topic", b"cluster-id"):
            pairs[key] += b"x"
        elif name == b"end-offset":
            pairs[key] = b"%d" % (int(pairs[key]) - 1)
        else:
            pairs[key] = b"%d" % (int(pairs[key]) + 1)

    return _footer_edited(patient, seed, edit)


def edited_footer_gone(patient: Patient, seed: int) -> str:
    return _footer_edited(patient, seed, lambda pairs, _: pairs.clear())
