"""`archiver schema infer`."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError
from archiver.terminal.amounts import counted, share
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import write_line

if TYPE_CHECKING:
    from archiver.schemas.format_settings import InferredSchema, Part
    from schema_mapping.value_format import DeclaredSchema

ENOUGH: Final = 10_000
"""Fewer records make a schema that later ones may not fit."""


def infer(
    topic: Annotated[
        str | None, typer.Argument(help="The topic, as Kafka names it; none with --from.", show_default=False)
    ] = None,
    of_key: Annotated[bool, typer.Option("--key", help="Infer the schema of keys.")] = False,
    records: Annotated[
        int, typer.Option("--records", min=1, max=1_000_000, help="Number of records to sample, at most 256 MiB.")
    ] = ENOUGH,
    lines: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Sample this file, with a value on each line.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--base", metavar="FILE", help="Extend this schema (default: the one of the topic's section)."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the schema to this file.")
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Propose a JSON Schema for a topic of JSON values, by a sample from all parts of its log. Archives nothing.

    The schema goes to standard output or --output, remarks go to standard error. Read it, keep it as a file, and name
    it in the topic's section: value = { format = "json", schema = "FILE" }. Equal samples have equal schemas.

    If the section names a schema already, the proposal extends it: its members keep their order, new ones follow.
    Then `archiver schema diff` prints what would change.
    """
    with reported(as_json=as_json):
        if (topic is None) == (lines is None):
            raise ConfigError("name either a topic, or a file of values with --from")
        if topic is None:
            assert lines is not None
            inferred = _of_lines(lines, base, records)
        else:
            inferred = _of_topic(config, topic, "key" if of_key else "value", base, records)
        if output is not None:
            _write(output, inferred.text)
        values: dict[str, Any] = {
            "topic": topic,
            "part": "key" if of_key else "value",
            "schema": inferred.text,
            "output": None if output is None else str(output),
            "sampled": inferred.values,
            "kept_raw": inferred.raw,
            "reasons": list(inferred.reasons),
            "remarks": list(inferred.remarks),
        }
        if as_json:
            write_line("schema_inferred", **values)
            return
        if output is None:
            sys.stdout.write(inferred.text)
        errors = TextConsole(stderr=True)
        for line in _remarks(inferred, output):
            errors.print(line)


def _of_topic(config: Path, topic: str, part: Part, base: Path | None, records: int) -> InferredSchema:
    from archiver.config import load_config
    from archiver.kafka import BrokerClient
    from archiver.schemas.format_settings import SchemaPlace
    from archiver.schemas.formats import FORMATS
    from archiver.setup.spread_samples import spread_records

    loaded = load_config(config)
    settings = loaded.topic(topic).key if part == "key" else loaded.topic(topic).value
    infer_schema = FORMATS.inference_of(settings)
    extended: DeclaredSchema | None = None
    if base is not None:
        extended = _schema_of(base)
    elif settings.has_schema:
        extended = FORMATS.source_schema(settings, SchemaPlace(topic=topic, part=part))
    with BrokerClient(loaded.kafka) as brokers:
        batches = [batch.column(part) for batch in spread_records(brokers, topic, records)]
    return infer_schema(batches, title=topic, base=extended)


def _of_lines(path: Path, base: Path | None, records: int) -> InferredSchema:
    import pyarrow as pa

    from archiver.schemas.formats import FORMATS

    try:
        with path.open("rb") as file:
            values = pa.array(list(_first_lines(file, records)), pa.binary())
    except OSError as error:
        raise ConfigError(f"the file can't be read: {error.strerror}", file=str(path)) from error
    extended = None if base is None else _schema_of(base)
    return FORMATS.inference_of(None)([values], title=path.name.partition(".")[0], base=extended)


def _first_lines(file: Iterable[bytes], most: int) -> Iterator[bytes]:
    left = most
    for number, line in enumerate(file):
        content = line if number else line.removeprefix(BOM_UTF8)
        if value := content.rstrip(b"\r\n"):
            yield value
            left -= 1
        if left == 0:
            return


def _schema_of(path: Path) -> DeclaredSchema:
    from archiver.schemas.format_settings import ProposedFile
    from archiver.schemas.formats import FORMATS

    return FORMATS.next_schema(ProposedFile(path=path))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise ConfigError(f"the schema can't be written: {error.strerror}", file=str(path)) from error


def _remarks(inferred: InferredSchema, output: Path | None) -> Sequence[Text]:
    from archiver.schemas.format_settings import MOST_RAW

    written = "" if output is None else f"Wrote {output}. "
    raw = share(inferred.raw / inferred.values)
    lines = [Text(f"{written}{counted(inferred.values, 'value')} sampled, {raw} of them would be kept raw.")]
    if inferred.values < ENOUGH:
        lines.append(_warning(f"fewer than {ENOUGH:,} values: later ones may have other members and types"))
    if inferred.raw > MOST_RAW * inferred.values:
        lines.append(_warning(f"kept raw: {'; '.join(inferred.reasons)}"))
    return [*lines, *(Text(f"  {remark}") for remark in inferred.remarks)]


def _warning(text: str) -> Text:
    return Text.assemble(("warning: ", "yellow"), text)
