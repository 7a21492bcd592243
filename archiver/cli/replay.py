"""`archiver replay`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.codecs import Codec
from archiver.light_start import quick_imports, spare_pandas

if TYPE_CHECKING:
    Compression: TypeAlias = str
else:
    Compression = StrEnum("Compression", {codec.name: codec.word for codec in Codec})
_TO_FILE = "To a file or standard output"
_TO_KAFKA = "To a Kafka topic"


class Format(StrEnum):
    JSONL = "jsonl"
    ARROW = "arrow"


def replay(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[
        str | None, typer.Option("--from", help="earliest, an offset, or a time (2026-01-31T00:00:00Z).")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="latest, an offset, or a time; not included.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition. Repeatable.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", help='Only records that match: "offset < 100 and key = \'a\'" or "val.id = 4711".'),
    ] = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of standard output.", rich_help_panel=_TO_FILE),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="jsonl (the default), or arrow: an Arrow IPC stream.", rich_help_panel=_TO_FILE),
    ] = None,
    decode: Annotated[
        bool,
        typer.Option(
            "--decode",
            help="Print keys and values as JSON, decoded with the schema of their row.",
            rich_help_panel=_TO_FILE,
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of records.", rich_help_panel=_TO_FILE)
    ] = None,
    to_kafka: Annotated[
        str | None,
        typer.Option(
            "--to-kafka", metavar="TOPIC", help="Copy records to this topic, exactly once.", rich_help_panel=_TO_KAFKA
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            metavar="HOST:PORT",
            help="Brokers of the target cluster. Default: the archived cluster.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        typer.Option(
            "--kafka-options",
            metavar="FILE",
            help="Client options for the target cluster, as name=value lines.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the target topic if it does not exist.", rich_help_panel=_TO_KAFKA)
    ] = False,
    topic_setting: Annotated[
        list[str] | None,
        typer.Option(
            "--topic-setting",
            metavar="NAME=VALUE",
            help="A setting of the topic that --create creates.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="Write after records of other producers.", rich_help_panel=_TO_KAFKA),
    ] = False,
    rate: Annotated[
        str | None,
        typer.Option("--rate", help="Maximum rate per second: 5000 (records) or 10MiB.", rich_help_panel=_TO_KAFKA),
    ] = None,
    compression: Annotated[
        Compression, typer.Option("--compression", help="Compression codec of the batches.", rich_help_panel=_TO_KAFKA)
    ] = Codec.ZSTD.word,
    offset_map: Annotated[
        Path | None,
        typer.Option(
            "--offset-map",
            metavar="FILE",
            help="Write the map of old to new offsets as JSON lines.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    translate_groups: Annotated[
        list[str] | None,
        typer.Option(
            "--translate-groups",
            metavar="GROUP|all",
            help="Translate this group's offsets. Repeatable.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    transfer: Annotated[
        str | None,
        typer.Option(
            "--transfer",
            metavar="NAME",
            help="Name of the transfer. Default: made of both topics' names.",
            rich_help_panel=_TO_KAFKA,
        ),
    ] = None,
    progress_topic: Annotated[
        str | None,
        typer.Option(
            "--progress-topic", metavar="TOPIC", help="Topic that stores the progress.", rich_help_panel=_TO_KAFKA
        ),
    ] = None,
    _verbose: Verbose = False,
) -> None:
    """Write a topic's archived records: byte for byte, partition by partition, in order.

    With --to-kafka they go to a Kafka topic instead, each exactly once, however often the command is stopped and
    started again.
    """
    with quick_imports():
        spare_pandas()
        from archiver.cli.replay_options import check_together
        from archiver.records.selection import Selection

    with reported(as_json=as_json):
        check_together(
            to_file={"--output": output, "--format": format_, "--decode": decode, "--limit": limit},
            to_kafka={
                "--bootstrap": bootstrap,
                "--kafka-options": kafka_options,
                "--create": create,
                "--topic-setting": topic_setting,
                "--append": append,
                "--rate": rate,
                "--offset-map": offset_map,
                "--translate-groups": translate_groups,
                "--transfer": transfer,
                "--progress-topic": progress_topic,
            },
            is_to_kafka=to_kafka is not None,
        )
        selection = Selection.parse(start=start, end=end, partitions=tuple(partition or ()), where=where)
        if to_kafka is None:
            from archiver.cli.replay_export import export

            export(
                config,
                topic,
                selection,
                output,
                is_arrow=format_ is Format.ARROW,
                decode=decode,
                limit=limit,
                as_json=as_json,
            )
            return
        from archiver.cli.replay_options import topic_settings
        from archiver.cli.replay_to_kafka import move
        from archiver.republish.job import PROGRESS_TOPIC, TransferOrder
        from archiver.republish.rate import Rate

        order = TransferOrder(
            target=to_kafka,
            name=transfer,
            start=selection.start_text,
            where=selection.where.text if selection.where else "",
            creates=create,
            topic_settings=topic_settings(topic_setting or []),
            appends=append,
            rate=Rate.parse(rate),
            codec=Codec.named(compression),
            progress_topic=progress_topic or PROGRESS_TOPIC,
            offset_map=offset_map,
            groups=tuple(translate_groups or ()),
        )
        move(config, topic, selection, order, bootstrap=bootstrap, kafka_options=kafka_options, as_json=as_json)
