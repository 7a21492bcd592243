"""`archiver hold`: places, lists and releases legal holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.upkeep.holds import Placed
    from catalog.ranges.legal_holds import Hold


def hold(
    topics: Annotated[list[str] | None, typer.Argument(help="The topic. With --list: topics; default: all.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[str | None, typer.Option("--from", help="First held offset or time.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Offset or time after the last held record.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition. Repeatable.")
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
    import json

    from archiver.config import load_config
    from archiver.terminal.console import TextConsole
    from archiver.upkeep.holds import Holds

    console = TextConsole()
    with reported(as_json=as_json):
        holds = Holds(load_config(config))
        if show:
            if release is not None or start is not None or end is not None or partition:
                raise ConfigError("--list takes topics, and no other option but --all")
            found = holds.listed(topics or (), with_released=everything)
            lines = [_line(each.topic, one) for each in found for one in each.holds] or ["no hold is in force"]
            told: dict[str, Any] = {
                "topics": [{"topic": each.topic, "holds": [one.to_json() for one in each.holds]} for each in found]
            }
        elif len(topics or ()) != 1:
            raise ConfigError("name one topic; `archiver hold --list` shows those of all")
        elif release is not None:
            done = holds.release((topics or [""])[0], release, reason=reason)
            lines, told = [f"released: {_line((topics or [''])[0], done)}"], done.to_json()
        else:
            placed = holds.place((topics or [""])[0], start=start, end=end, partitions=partition or (), reason=reason)
            lines, told = _placed_lines(placed), _placed_json(placed)
    if as_json:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for line in lines:
        console.print(line, soft_wrap=True)


def _line(topic: str, hold: Hold) -> str:
    spans = "; ".join(span.text for span in hold.spans)
    told = f"{topic}: {hold.id} holds {spans}"
    if hold.placed_at:
        told += f", placed {hold.placed_at} by {hold.placed_by}"
    if hold.reason:
        told += f": {hold.reason}"
    if hold.released_at:
        why = f": {hold.released_why}" if hold.released_why else ""
        told += f"; released {hold.released_at} by {hold.released_by}{why}"
    return told


def _placed_lines(placed: Placed) -> list[str]:
    lines = [_line(placed.topic, placed.hold)]
    lines += [
        f"partition {each}: records before {offset:,} were retired before" for each, offset in placed.retired.items()
    ]
    if placed.erased:
        lines.append(f"{placed.erased:,} of these offsets were erased before")
    if placed.in_doubt:
        lines.append(
            "a removal that was begun before may still take some of these records out of the table: run `archiver"
            f" reconcile {placed.topic}` to see. Their files stay in the store as long as the hold: commits"
            f" {', '.join(placed.in_doubt)}"
        )
    return lines


def _placed_json(placed: Placed) -> dict[str, Any]:
    return {
        "hold": placed.hold.to_json(),
        "retired_before": {str(each): offset for each, offset in sorted(placed.retired.items())},
        "erased_before": placed.erased,
        "removals_in_doubt": list(placed.in_doubt),
    }
