"""`archiver hold`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError


def hold(
    topics: Annotated[list[str] | None, typer.Argument(help="The topic. With --list: topics; default: all.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[str | None, typer.Option("--from", help="First held offset or time.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Offset or time after the last held record.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition. Repeatable.")
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            metavar="NAME=VALUE",
            help="Only the archived records with this metadata. Repeatable.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Reason for placing or releasing the hold.")] = "",
    show: Annotated[bool, typer.Option("--list", help="List the holds in force.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --list: also released holds.")] = False,
    release: Annotated[str | None, typer.Option("--release", help="Release the hold with this id.")] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Place a legal hold on a topic's records: no command removes them until it is released.

    Without --from and --to it covers everything, also what is archived later. A time means the first offset at or after
    it, found when the hold is placed. --list shows holds, --release ends one.
    """
    from rich.text import Text

    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.hold_screen import hold_line, placed_json, placed_lines
    from archiver.upkeep.holds import HoldKeeper

    with reported(as_json=as_json):
        holds = HoldKeeper(load_config(config))
        if show:
            if release is not None or start is not None or end is not None or partition or meta:
                raise ConfigError("--list takes topics, and no other option but --all")
            listed = holds.listed(topics or (), with_released=everything)
            lines = [hold_line(entry.topic, legal_hold) for entry in listed for legal_hold in entry.holds] or [
                "no hold is in force"
            ]
            event = "holds"
            values: dict[str, Any] = {
                "topics": [
                    {"topic": entry.topic, "holds": [legal_hold.to_json() for legal_hold in entry.holds]}
                    for entry in listed
                ]
            }
        elif len(topics or ()) != 1:
            raise ConfigError("name one topic; `archiver hold --list` shows those of all")
        elif release is not None:
            done = holds.release((topics or [""])[0], release, reason=reason)
            lines = [f"released: {hold_line((topics or [''])[0], done)}"]
            event, values = "hold_released", {"hold": done.to_json()}
        else:
            placed = holds.place(
                (topics or [""])[0],
                start=start,
                end=end,
                partitions=partition or (),
                metadata=meta or (),
                reason=reason,
            )
            lines = placed_lines(placed)
            event, values = "hold_placed", placed_json(placed)
    print_answer(event, values, lambda: Text("\n".join(lines)), as_json=as_json, soft_wrap=True)
