"""`archiver metadata`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.find import NOTHING_FOUND
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.upkeep.metadata import Changed, NamedTargets
    from catalog.record_metadata import MetadataEntry

metadata_app = typer.Typer(help="Names and values that you give to keys and offsets.", no_args_is_help=True)

Topic = Annotated[str, typer.Argument(help="The topic.")]
Name = Annotated[str, typer.Argument(help="The name.")]
Names = Annotated[list[str] | None, typer.Argument(help="Only these names.")]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", "-k", help="For all records with this key: text, or bytes as 0x00ff. Repeatable."),
]
Offsets = Annotated[
    list[str] | None,
    typer.Option(
        "--offsets",
        metavar="PARTITION:FIRST-LAST",
        help="For these offsets, first and last included: 0:1200-1209 or 0:1200. Repeatable.",
    ),
]
File = Annotated[
    str | None,
    typer.Option("--file", help="For the offsets that this data file has now: its path or name."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check, print what would be done, and change nothing.")]


@metadata_app.callback()
def root() -> None:
    """Names and values that you give to keys and offsets."""


@metadata_app.command("set")
def set_(
    topic: Topic,
    values: Annotated[list[str], typer.Argument(metavar="NAME=VALUE", help="The values.")],
    config: ConfigPath = DEFAULT_CONFIG,
    key: Keys = None,
    offsets: Offsets = None,
    file: File = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Set values for keys or offsets. The latest value of a name is in force; its history is kept.

    `archiver find --meta NAME=VALUE` finds the records.
    """
    from archiver.config import load_config
    from archiver.upkeep.metadata import MetadataKeeper

    with reported(as_json=as_json):
        keeper = MetadataKeeper(load_config(config))
        chosen = _targets(key, offsets, file, is_needed=True)
        changed = keeper.set(topic, chosen, _values(values), dry_run=dry_run)
    _print_changed(topic, changed, event="metadata_set", dry_run=dry_run, as_json=as_json)


@metadata_app.command()
def delete(
    topic: Topic,
    names: Annotated[list[str], typer.Argument(help="The names.")],
    config: ConfigPath = DEFAULT_CONFIG,
    key: Keys = None,
    offsets: Offsets = None,
    file: File = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Delete values of keys or offsets: the very ones for which they were set. Their history is kept."""
    from archiver.config import load_config
    from archiver.upkeep.metadata import MetadataKeeper

    with reported(as_json=as_json):
        keeper = MetadataKeeper(load_config(config))
        changed = keeper.unset(topic, _targets(key, offsets, file, is_needed=True), names, dry_run=dry_run)
    _print_changed(topic, changed, event="metadata_deleted", dry_run=dry_run, as_json=as_json)


@metadata_app.command()
def get(
    topic: Topic,
    name: Name,
    config: ConfigPath = DEFAULT_CONFIG,
    key: Keys = None,
    offsets: Offsets = None,
    file: File = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print the values of a name, one a line: for a key, some of the offsets, or the whole topic.

    Exit code 0: there is one, 3: there is none.
    """
    from rich.text import Text

    from archiver.terminal.answer import print_answer
    from archiver.terminal.metadata_screen import entry_json

    entries = _listed(topic, (name,), config, (key, offsets, file), with_history=False, as_json=as_json)
    json_values = {"topic": topic, "entries": [entry_json(entry) for entry in entries]}
    if entries or as_json:
        lines = (entry.value or "" for entry in entries)
        print_answer("metadata", json_values, lambda: Text("\n".join(lines)), as_json=as_json, soft_wrap=True)
    if not entries:
        raise typer.Exit(NOTHING_FOUND)


@metadata_app.command("list")
def list_(
    topic: Topic,
    names: Names = None,
    config: ConfigPath = DEFAULT_CONFIG,
    key: Keys = None,
    offsets: Offsets = None,
    file: File = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List the values in force: of a key, some of the offsets, or the whole topic."""
    entries = _listed(topic, names or (), config, (key, offsets, file), with_history=False, as_json=as_json)
    _print_entries(topic, entries, as_json=as_json)


@metadata_app.command()
def history(
    topic: Topic,
    names: Names = None,
    config: ConfigPath = DEFAULT_CONFIG,
    key: Keys = None,
    offsets: Offsets = None,
    file: File = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List every value that was set or deleted, when and by whom, oldest first."""
    entries = _listed(topic, names or (), config, (key, offsets, file), with_history=True, as_json=as_json)
    _print_entries(topic, entries, as_json=as_json)


def _listed(
    topic: str,
    names: Sequence[str],
    config: Path,
    targets: tuple[list[str] | None, list[str] | None, str | None],
    *,
    with_history: bool,
    as_json: bool,
) -> tuple[MetadataEntry, ...]:
    from archiver.config import load_config
    from archiver.upkeep.metadata import MetadataKeeper

    with reported(as_json=as_json):
        keeper = MetadataKeeper(load_config(config))
        return keeper.listed(topic, _targets(*targets, is_needed=False), names, with_history=with_history)


def _targets(
    keys: Sequence[str] | None, offsets: Sequence[str] | None, file: str | None, *, is_needed: bool
) -> NamedTargets:
    from archiver.find.query import octets_of
    from archiver.upkeep.erase.offset_list import OffsetList
    from archiver.upkeep.metadata import NamedTargets

    targets = NamedTargets(
        keys=tuple(map(octets_of, keys or ())), offsets=OffsetList.parse(offsets or ()).spans, file=file
    )
    if is_needed and targets.are_none:
        raise ConfigError("Say what it is for: --key, --offsets or --file")
    return targets


def _values(texts: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or name in values:
            raise ConfigError("write each name once, with its value: NAME=VALUE, such as case=12", found=text)
        values[name] = value
    return values


def _print_changed(topic: str, changed: Changed, *, event: str, dry_run: bool, as_json: bool) -> None:
    from rich.text import Text

    from archiver.terminal.answer import print_answer
    from archiver.terminal.metadata_screen import changed_lines, entry_json

    values = {
        "topic": topic,
        "entries": [entry_json(entry) for entry in changed.entries],
        "is_journaled": changed.is_journaled,
        "dry_run": dry_run,
    }
    lines = changed_lines(changed.entries, is_journaled=changed.is_journaled, dry_run=dry_run)
    print_answer(event, values, lambda: Text("\n".join(lines)), as_json=as_json, soft_wrap=True)


def _print_entries(topic: str, entries: Sequence[MetadataEntry], *, as_json: bool) -> None:
    from archiver.terminal.answer import print_answer
    from archiver.terminal.metadata_screen import entries_text, entry_json

    values = {"topic": topic, "entries": [entry_json(entry) for entry in entries]}
    print_answer("metadata", values, lambda: entries_text(entries), as_json=as_json, soft_wrap=True)
