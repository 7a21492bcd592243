"""Injuries of metadata."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import fastavro
import psycopg

from schema_mapping.columns.fixed import OFFSET_ID
from tests.support.archive.patient import Patient


def missing_entry(patient: Patient, seed: int) -> str:
    path = random.Random(seed).choice(patient.entries())
    patient.delete(path)
    return path


def flipped_entry(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    path = dice.choice(patient.entries())
    value = json.loads(patient.read(path))
    range_ = dice.choice(value["ranges"])
    what = dice.choice(["digest", "rows", "start_offset", "end_offset", "path", "size_bytes"])
    if what in ("start_offset", "end_offset"):
        range_[what] += 1
    elif what == "digest":
        range_["file"]["digest"] = f"{int(range_['file']['digest'], 16) ^ (1 << dice.randrange(128)):032x}"
    elif what == "path":
        range_["file"]["path"] = range_["file"]["path"][:-9] + "x.parquet"
    else:
        range_["file"][what] += 1
    patient.write(path, json.dumps(value).encode())
    return f"{path} {what}"


def broken_entry(patient: Patient, seed: int) -> str:
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
    reader = fastavro.reader(io.BytesIO(patient.read(path)))
    records = list(reader)
    edit(records)
    out = io.BytesIO()
    schema = json.loads(reader.metadata["avro.schema"])
    meta = {name: value for name, value in reader.metadata.items() if not name.startswith("avro.")}
    fastavro.writer(out, schema, records, codec="null", metadata=meta)
    patient.write(path, out.getvalue())


def edited_manifest_rows(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    manifest = dice.choice(_manifests(patient))

    def edit(entries: list[dict[str, Any]]) -> None:
        entry = dice.choice(entries)["data_file"]
        entry[dice.choice(["record_count", "file_size_in_bytes"])] += dice.choice([-1, 1])

    _avro_edited(patient, manifest.manifest_path, edit)
    return str(manifest.manifest_path)


def edited_manifest_bounds(patient: Patient, seed: int) -> str:
    dice = random.Random(seed)
    manifest = dice.choice(_manifests(patient))

    def edit(entries: list[dict[str, Any]]) -> None:
        file = dice.choice(entries)["data_file"]
        side = dice.choice(["lower_bounds", "upper_bounds"])
        for value in file[side]:
            if value["key"] == OFFSET_ID:
                number = int.from_bytes(value["value"], "little", signed=True)
                value["value"] = (number + (1 if side == "lower_bounds" else -1)).to_bytes(8, "little", signed=True)

    _avro_edited(patient, manifest.manifest_path, edit)
    return str(manifest.manifest_path)


def dropped_manifest_entry(patient: Patient, seed: int) -> str:
    manifest = random.Random(seed).choice(_manifests(patient))
    _avro_edited(patient, manifest.manifest_path, lambda entries: entries.pop() and None)
    return str(manifest.manifest_path)


def edited_manifest_list(patient: Patient, seed: int) -> str:
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
