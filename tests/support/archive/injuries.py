"""What can happen to an archive in years: seeded injuries of its files, metadata, journal and registry."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fastavro
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from archiver.archive.table_files import ManifestReader
from archiver.config import Config, load_config
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog


@dataclass(slots=True, kw_only=True)
class Patient:
    """A topic's archive that is hurt, and healed again: what was written over or deleted is remembered."""

    config: Config
    table: ArchiveTable
    journal: TableJournal
    objects: ObjectStore
    _before: dict[str, bytes] = field(default_factory=dict)
    _sql: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of(cls, path: Path) -> Iterator[Patient]:
        """For the one topic of a configuration."""
        config = load_config(path)
        (name,) = config.sections
        with TableCatalog(config.catalog) as catalog:
            table = catalog.adopt(config.topic(name).table, topic=name)
            assert table is not None
            yield cls(
                config=config,
                table=table,
                journal=Journal.of(config).of_table(table),
                objects=ObjectStore.of_table(table.iceberg),
            )

    def paths(self) -> list[str]:
        """The table's data files."""
        return sorted(file.path for file in ManifestReader().files(self.table.iceberg))

    def entries(self, prefix: str = "commit-") -> list[str]:
        """The objects of the journal."""
        assert self.journal.folder is not None
        return sorted(
            each.path for each in self.journal.objects.list(self.journal.folder) if each.name.startswith(prefix)
        )

    def read(self, path: str) -> bytes:
        return self.objects.read(path)

    def write(self, path: str, data: bytes) -> None:
        """Write over an object."""
        self._before.setdefault(path, self.read(path))
        self.objects.write(path, data)

    def delete(self, path: str) -> None:
        self._before.setdefault(path, self.read(path))
        self.objects.delete(path)

    def heal(self) -> None:
        """Put everything back."""
        for path, data in self._before.items():
            self.objects.write(path, data)
        with psycopg.connect(self.config.registry.dsn) as connection:
            for statement, values in reversed(self._sql):
                connection.execute(statement, values)

    def sql(self, statement: str, undo: str, *values: Any) -> None:
        with psycopg.connect(self.config.registry.dsn) as connection:
            connection.execute(statement, values)
        self._sql.append((undo, values))


@contextmanager
def healed(path: Path) -> Iterator[Patient]:
    """A patient that is healed at the end."""
    with Patient.of(path) as patient:
        try:
            yield patient
        finally:
            patient.heal()


Injury = Callable[[Patient, int], str]
"""Hurts a patient, by a seed; says where."""


def flipped_page(patient: Patient, seed: int) -> str:
    """One bit flips in a page of any column, in its data or in what its header says to readers."""
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    with pq.ParquetFile(io.BytesIO(data)) as file:
        before, footer = file.read(), file.metadata
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(footer.num_columns)]
    while True:
        chunk = dice.choice([each for each in chunks if each.total_compressed_size])
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        place = dice.randrange(start, start + chunk.total_compressed_size)
        hurt = bytearray(data)
        hurt[place] ^= 1 << dice.randrange(8)
        if _reads_otherwise(bytes(hurt), before):
            patient.write(path, bytes(hurt))
            return f"{path} {chunk.path_in_schema} byte {place}"


def _reads_otherwise(data: bytes, before: pa.Table) -> bool:
    """Whether a reader that looks at checksums sees a difference. Parts of page headers are read by nobody."""
    try:
        with pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True) as file:
            return not file.read().equals(before)
    except (OSError, pa.ArrowException):
        return True


def cut_file(patient: Patient, seed: int) -> str:
    """A file is cut short."""
    dice = random.Random(seed)
    path = dice.choice(patient.paths())
    data = patient.read(path)
    patient.write(path, data[: dice.randrange(1, len(data))])
    return path


def missing_file(patient: Patient, seed: int) -> str:
    """A file is gone."""
    path = random.Random(seed).choice(patient.paths())
    patient.delete(path)
    return path


def swapped_files(patient: Patient, seed: int) -> str:
    """Two files change places."""
    one, other = random.Random(seed).sample(patient.paths(), 2)
    first, second = patient.read(one), patient.read(other)
    patient.write(one, second)
    patient.write(other, first)
    return f"{one} and {other}"


def doubled_file(patient: Patient, seed: int) -> str:
    """A file has the content of another one."""
    one, other = random.Random(seed).sample(patient.paths(), 2)
    patient.write(one, patient.read(other))
    return f"{one} is {other}"


def _rewritten(patient: Patient, path: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Rows of a file changed by somebody who keeps footer and schema: pages and checksums are right."""
    with pq.ParquetFile(io.BytesIO(patient.read(path))) as file:
        table = file.read()
        pairs = file.metadata.metadata
    rows = change(table.to_pylist())
    schema = table.schema.with_metadata({k: v for k, v in pairs.items() if k.startswith(b"archiver.")})
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), out, compression="zstd")
    patient.write(path, out.getvalue())


def dropped_row(patient: Patient, seed: int) -> str:
    """A row is left out."""
    dice = random.Random(seed)
    path = dice.choice(patient.paths())

    def drop(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        gone = dice.randrange(len(rows))
        return rows[:gone] + rows[gone + 1 :]

    _rewritten(patient, path, drop)
    return path


def doubled_row(patient: Patient, seed: int) -> str:
    """A row is there twice."""
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
    """A record's header has another value."""

    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["headers"] = [{**row["headers"][0], "value": b"%d" % dice.randrange(1 << 30)}]

    return _changed(patient, seed, change)


def changed_value(patient: Patient, seed: int) -> str:
    """A record's value is another one."""

    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["val"]["__raw__"] = b"x%d" % dice.randrange(1 << 30)

    return _changed(patient, seed, change)


def changed_key(patient: Patient, seed: int) -> str:
    """A record's key is another one, or none."""

    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["key"]["__raw__"] = dice.choice([None, b"other"])

    return _changed(patient, seed, change)


def changed_offset(patient: Patient, seed: int) -> str:
    """A record has another offset."""

    def change(row: dict[str, Any], dice: random.Random) -> None:
        row["kafka"]["offset"] += dice.choice([-1, 1, 1000])

    return _changed(patient, seed, change)


def changed_time(patient: Patient, seed: int) -> str:
    """A record has another timestamp."""

    def change(row: dict[str, Any], dice: random.Random) -> None:
        from datetime import timedelta

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
    """A footer has another digest."""

    def edit(pairs: dict[bytes, bytes], dice: random.Random) -> None:
        pairs[b"archiver.digest"] = b"%032x" % dice.getrandbits(128)

    return _footer_edited(patient, seed, edit)


def edited_footer_place(patient: Patient, seed: int) -> str:
    """A footer claims other offsets, or another partition, topic or schema."""

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
    """A footer is without what the archiver wrote into it."""
    return _footer_edited(patient, seed, lambda pairs, _: pairs.clear())


def missing_entry(patient: Patient, seed: int) -> str:
    """An entry of the journal is gone."""
    path = random.Random(seed).choice(patient.entries())
    patient.delete(path)
    return path


def flipped_entry(patient: Patient, seed: int) -> str:
    """A bit flips in the digest, the path or the offsets of an entry of the journal."""
    dice = random.Random(seed)
    path = dice.choice(patient.entries())
    value = json.loads(patient.read(path))
    one = dice.choice(value["ranges"])
    what = dice.choice(["digest", "rows", "start_offset", "end_offset", "path", "size_bytes"])
    if what in ("start_offset", "end_offset"):
        one[what] += 1
    elif what == "digest":
        one["file"]["digest"] = f"{int(one['file']['digest'], 16) ^ (1 << dice.randrange(128)):032x}"
    elif what == "path":
        one["file"]["path"] = one["file"]["path"][:-9] + "x.parquet"
    else:
        one["file"][what] += 1
    patient.write(path, json.dumps(value).encode())
    return f"{path} {what}"


def broken_entry(patient: Patient, seed: int) -> str:
    """An entry of the journal is cut short."""
    dice = random.Random(seed)
    path = dice.choice(patient.entries() + patient.entries("schema-") + patient.entries("starts-"))
    data = patient.read(path)
    patient.write(path, data[: dice.randrange(1, len(data))])
    return path


def _manifests(patient: Patient) -> list[Any]:
    snapshot = patient.table.iceberg.current_snapshot()
    assert snapshot is not None
    return [*snapshot.manifests(patient.table.io)]


def _avro_edited(patient: Patient, path: str, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    """Records of an Avro file changed; it keeps its length where that is what the list says."""
    reader = fastavro.reader(io.BytesIO(patient.read(path)))
    records = list(reader)
    edit(records)
    out = io.BytesIO()
    schema = json.loads(reader.metadata["avro.schema"])
    meta = {name: value for name, value in reader.metadata.items() if not name.startswith("avro.")}
    fastavro.writer(out, schema, records, codec="null", metadata=meta)
    patient.write(path, out.getvalue())


def edited_manifest_rows(patient: Patient, seed: int) -> str:
    """A manifest counts other rows or bytes of a file."""
    dice = random.Random(seed)
    manifest = dice.choice(_manifests(patient))

    def edit(entries: list[dict[str, Any]]) -> None:
        entry = dice.choice(entries)["data_file"]
        entry[dice.choice(["record_count", "file_size_in_bytes"])] += dice.choice([-1, 1])

    _avro_edited(patient, manifest.manifest_path, edit)
    return str(manifest.manifest_path)


def edited_manifest_bounds(patient: Patient, seed: int) -> str:
    """A manifest has bounds of offsets that hide rows."""
    from schema_mapping.columns.fixed import OFFSET_ID

    dice = random.Random(seed)
    manifest = dice.choice(_manifests(patient))

    def edit(entries: list[dict[str, Any]]) -> None:
        file = dice.choice(entries)["data_file"]
        side = dice.choice(["lower_bounds", "upper_bounds"])
        for each in file[side]:
            if each["key"] == OFFSET_ID:
                number = int.from_bytes(each["value"], "little", signed=True)
                each["value"] = (number + (1 if side == "lower_bounds" else -1)).to_bytes(8, "little", signed=True)

    _avro_edited(patient, manifest.manifest_path, edit)
    return str(manifest.manifest_path)


def dropped_manifest_entry(patient: Patient, seed: int) -> str:
    """A manifest doesn't name a file any more."""
    manifest = random.Random(seed).choice(_manifests(patient))
    _avro_edited(patient, manifest.manifest_path, lambda entries: entries.pop() and None)
    return str(manifest.manifest_path)


def edited_manifest_list(patient: Patient, seed: int) -> str:
    """A manifest list counts other rows, or names one manifest less."""
    dice = random.Random(seed)
    snapshot = patient.table.iceberg.current_snapshot()
    assert snapshot is not None

    def edit(manifests: list[dict[str, Any]]) -> None:
        if len(manifests) > 1 and dice.random() < 0.5:
            manifests.pop(dice.randrange(len(manifests)))
        else:
            dice.choice(manifests)["added_rows_count"] += 1

    _avro_edited(patient, snapshot.manifest_list, edit)
    return snapshot.manifest_list


def edited_registry(patient: Patient, seed: int) -> str:
    """A row of the registry has another digest."""
    dice = random.Random(seed)
    with psycopg.connect(patient.config.registry.dsn) as connection:
        rows = connection.execute("SELECT id, digest FROM files WHERE state = 'committed' ORDER BY id").fetchall()
    range_id, digest = dice.choice(rows)
    patient.sql(
        "UPDATE files SET digest = reverse(digest) WHERE id = %s",
        "UPDATE files SET digest = reverse(digest) WHERE id = %s",
        range_id,
    )
    return f"{range_id} {digest}"


INJURIES: Final[dict[str, Injury]] = {
    each.__name__: each
    for each in (
        flipped_page,
        cut_file,
        missing_file,
        swapped_files,
        doubled_file,
        dropped_row,
        doubled_row,
        changed_header,
        changed_value,
        changed_key,
        changed_offset,
        changed_time,
        edited_footer_digest,
        edited_footer_place,
        edited_footer_gone,
        missing_entry,
        flipped_entry,
        broken_entry,
        edited_manifest_rows,
        edited_manifest_bounds,
        dropped_manifest_entry,
        edited_manifest_list,
        edited_registry,
    )
}
