"""The output of `archiver find`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import typer

from archiver.archive.records import RECORDS
from archiver.cli.replay_export import standard_output
from archiver.find.search import Search
from archiver.observer import all_of
from archiver.replay.jsonl import render_decoded
from archiver.replay.output_file import StandardOutput
from archiver.terminal.console import Terminal, TextConsole
from archiver.terminal.find_screen import FindScreen, explained, records_listing, report_json
from archiver.terminal.json_lines import json_line, write_line


@dataclass(slots=True)
class FindOutput:
    """Each method returns the number of results."""

    search: Search
    as_json: bool
    explain: bool

    def records(self, kind: str) -> int:
        """`kind` is `table`, `jsonl` or `arrow`."""
        shares_terminal = sys.stdout.isatty()  # a bar would stand among the records
        with self._reported(bar=not shares_terminal), standard_output() as stream:
            match kind:
                case "arrow":
                    self._arrow(stream)
                case "jsonl":
                    for topic, batch in self.search:
                        stream.writelines(render_decoded(topic, batch))
                        stream.flush()
                case _:
                    console = TextConsole()
                    for topic, batch in self.search:
                        console.print(records_listing(topic, batch))
        return self.search.report.records

    def count(self) -> int:
        with self._reported(bar=True):
            total = self.search.count()
        if not self.as_json:
            typer.echo(str(total))
        return total

    def files(self) -> int:
        listed = 0
        with self._reported(bar=False):
            for topic, file in self.search.files():
                listed += 1
                values = {"topic": topic, "path": file.path, "records": file.rows, "size_bytes": file.size_bytes}
                typer.echo(json_line("file", **values) if self.as_json else file.path)
        return listed

    def _arrow(self, stream: StandardOutput) -> None:
        schema = pa.schema([pa.field("topic", pa.string(), nullable=False), *RECORDS])
        with pa.ipc.new_stream(stream, schema) as writer:
            for topic, batch in self.search:
                topics = pa.array([topic] * batch.num_rows, pa.string())
                columns = [topics, *(batch.column(name) for name in RECORDS.names)]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))

    @contextmanager
    def _reported(self, *, bar: bool) -> Iterator[None]:
        errors = Terminal(stderr=True, force_terminal=None if bar else False)
        started = time.monotonic()
        if errors.is_terminal and not self.as_json:
            with FindScreen(errors) as screen:
                self.search.observer = all_of(screen)
                yield
        else:
            yield
        seconds, notes = time.monotonic() - started, self.search.notes()
        if self.as_json:
            read = {"explain": report_json(self.search.report)} if self.explain else {}
            write_line(
                "found",
                out=sys.stderr,
                records=self.search.report.records,
                seconds=round(seconds, 3),
                notes=notes,
                **read,
            )
            return
        for note in notes:
            errors.print(note, style="yellow")
        for line in explained(self.search.report) if self.explain else ():
            errors.print(line)
        if self.explain:
            errors.print(f"{seconds:.2f} s")
