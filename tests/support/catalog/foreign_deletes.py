"""A merge-on-read DELETE: a position delete file per data file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.archive.listed_table import position_deletes
from tests.support.catalog.delete_manifests import add_delete_files
from tests.support.catalog.foreign_writes import read, table_of
from tests.support.servers.stack import Stack


def delete_positions(stack: Stack, config: Path, topic: str, partition: int, offsets: Iterable[int]) -> list[str]:
    table, gone = table_of(stack, config, topic), set(offsets)
    files, touched = [], []
    for data, rows in read(table):
        places = [(row["partition"], row["offset"]) for row in rows["kafka"].to_pylist()]
        positions = [at for at, (its, offset) in enumerate(places) if its == partition and offset in gone]
        if not positions:
            continue
        path = f"{data.file_path.rpartition('/')[0]}/deletes-{uuid4()}.parquet"
        sink = io.BytesIO()
        pq.write_table(
            pa.table({"file_path": [data.file_path] * len(positions), "pos": pa.array(positions, pa.int64())}), sink
        )
        with table.io.new_output(path).create() as stream:
            stream.write(sink.getvalue())
        values = [data.partition[index] for index in range(len(data.partition))]
        file = position_deletes(path, values, of=(data.file_path, data.file_path))
        file.spec_id = data.spec_id
        files.append(file)
        touched.append(data.file_path)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as producer:
        add_delete_files(producer, table, files)
    return touched
