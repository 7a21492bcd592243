"""`archiver replay`: writes records of an archived topic to standard output or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, ConfigPath
from archiver.errors import ConfigError

BROKEN_PIPE = 141


class Format(StrEnum):
    """What a replay writes."""

    JSONL = "jsonl"
    ARROW = "arrow"


def replay(
    topic: Annotated[str, typer.Argument(help="The topic, as it is named in Kafka.")],
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[
        str | None, typer.Option("--from", help="earliest, an offset, or a time (2026-01-31T00:00:00Z).")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="latest, an offset, or a time; not included.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition; may be given again.")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="JSON lines, or an Arrow IPC stream.")] = Format.JSONL,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")] = None,
) -> None:
    """Write a topic's records from its table: byte for byte, partition by partition and in order."""
    from archiver.config import load_config
    from archiver.replay import Selection, open_archive, write_arrow, write_jsonl

    with reported():
        selection = Selection.parse(start=start, end=end, partitions=tuple(partition or ()))
        archive = open_archive(load_config(config), topic)
        with _opened(output) as stream:
            write = write_jsonl if format_ is Format.JSONL else write_arrow
            write(archive, selection, stream)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Open the stream to write to. If the reader of standard output closes it, the replay ends quietly."""
    if output is not None:
        try:
            file = output.open("wb")
        except OSError as error:
            raise ConfigError(f"The output file cannot be written: {error.strerror}", file=str(output)) from error
        with file:
            yield file
        return
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(BROKEN_PIPE) from None
