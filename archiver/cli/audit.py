"""`archiver audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import ConfigError
from archiver.terminal.amounts import counted
from archiver.terminal.answer import print_answer
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import write_line

audit_app = typer.Typer(help="The audit trail: every act on each table.", no_args_is_help=True)

_SHOWN: Final = 20

PublicKeys = Annotated[
    list[Path] | None,
    typer.Option(
        "--public-key",
        "-k",
        help="PEM file with a public key that signed checkpoints. Repeatable, after a change of keys.",
    ),
]


@audit_app.callback()
def root() -> None:
    """The audit trail: every act on each table."""


@audit_app.command()
def show(
    topic: Annotated[str, typer.Argument(help="A topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    kind: Annotated[
        list[str] | None, typer.Option("--act", help="Only these acts: append, compact, erase, …. Repeatable.")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="First time (2026-01-31T00:00:00Z).")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Time after the last entry.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Print only the last N entries.")] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print the entries of a topic's trail, oldest first: act, time and principal. Checks nothing."""
    from archiver.audit.trails import find_trails
    from archiver.config import load_config
    from archiver.terminal.audit_screen import Wanted, entry_listing

    with reported(as_json=as_json):
        selection = Wanted.of(kinds=kind or (), since=since, until=until, limit=limit)
        entries = [
            entry for trail in find_trails(load_config(config), [topic]) for entry in selection.select(trail.entries())
        ]
    if as_json:
        for entry in entries:
            write_line("entry", entry=entry)
    else:
        TextConsole().print(entry_listing(entries))


@audit_app.command()
def check(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: every trail in the journal.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    public_key: PublicKeys = None,
    checkpoint: Annotated[
        list[Path] | None, typer.Option("--checkpoint", help="A checkpoint that was stored elsewhere. Repeatable.")
    ] = None,
    max_age: Annotated[
        str | None, typer.Option("--max-age", help="Fail if the last signed checkpoint is older (2d).")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Check a folder of `archiver audit export`; needs no configuration.")
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Also compare the end of each trail with the registry.")
    ] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Check that no entry of a trail was changed, dropped, moved or cut off. Needs the journal and the public key.

    Without a public key no signature is checked. Entries after the last checkpoint aren't signed yet: that some of them
    were cut off can be seen only with --registry.
    """
    from archiver.audit.signing import PublicKey
    from archiver.audit.trails import exported_trail, find_trails
    from archiver.cli.audit_checks import KeptCheckpoints, heads_of
    from archiver.config import load_config
    from archiver.terminal.audit_screen import report_json, report_lines

    with reported(as_json=as_json):
        if folder is not None and (topics or registry):
            raise ConfigError("--folder is one exported trail: it goes without topics and without --registry")
        keys = [PublicKey.load(path) for path in public_key or ()]
        seconds = seconds_of("--max-age", max_age)
        if (seconds is not None or checkpoint) and not keys:
            raise ConfigError("--max-age and --checkpoint are about signatures: give the --public-key")
        kept = KeptCheckpoints.read(checkpoint or ())
        trails = (exported_trail(folder),) if folder is not None else find_trails(load_config(config), topics or ())
        heads = heads_of(load_config(config)) if registry else {}
        checked = [
            trail.check(keys, kept=kept.of(trail), max_age=seconds, head=heads.get(trail.folder.path))
            for trail in trails
        ]
        kept.refuse_unmatched()
    values = {"trails": [report_json(report) for report in checked]}
    print_answer("trails", values, lambda: "\n".join(report_lines(checked, shown=_SHOWN)), as_json=as_json)
    if any(not result.is_whole for result in checked):
        raise typer.Exit(FAILED)


@audit_app.command()
def checkpoint(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all archived topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Sign the ends of trails with the configured key. Jobs do this every `checkpoint_every`."""
    from archiver.cli.audit_checks import sign_all
    from archiver.config import load_config

    with reported(as_json=as_json):
        settings = load_config(config)
        if settings.audit.signing_key is None:
            raise ConfigError("Nothing signs checkpoints: set `signing_key` in [audit]", key="audit.signing_key")
        done = sign_all(settings, topics or ())
    signed: list[dict[str, Any]] = [
        {"topic": topic, "entries": made.entries if made else None, "root": made.root if made else None}
        for topic, made in done.items()
    ]
    lines = [
        f"{trail['topic']}: "
        + ("nothing signed" if trail["root"] is None else f"{counted(trail['entries'], 'entry', 'entries')} signed")
        for trail in signed
    ]
    print_answer("checkpoints", {"checkpoints": signed}, lambda: "\n".join(lines), as_json=as_json)
    if any(entry["root"] is None for entry in signed):
        raise typer.Exit(FAILED)


@audit_app.command()
def export(
    topic: Annotated[str, typer.Argument(help="A topic.")],
    target: Annotated[Path, typer.Argument(help="A new folder.")],
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Copy a trail into a folder, byte for byte: entries as JSON lines, and the checkpoints."""
    from archiver.audit.export import export as copy
    from archiver.audit.trails import find_trails
    from archiver.config import load_config

    with reported(as_json=as_json):
        trails = find_trails(load_config(config), [topic])
        if len(trails) > 1:
            raise ConfigError(
                "The topic had several tables, each with a trail of its own: copy the folders from the store",
                folders=[trail.folder.path for trail in trails],
            )
        entries = copy(trails[0].folder, target)
    values = {"topic": topic, "folder": str(target), "entries": entries}
    text = f"{topic}: {counted(entries, 'entry', 'entries')} in {target}"
    print_answer("trail_exported", values, lambda: text, as_json=as_json)


@audit_app.command()
def keygen(
    path: Annotated[Path, typer.Argument(help="File for the private key. The public key is written to PATH.pub.")],
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Create a signing key and its public key. Keep the private key away from the journal's store."""
    from archiver.audit.signing import SigningKey

    with reported(as_json=as_json):
        made = SigningKey.generate(path, path.with_name(f"{path.name}.pub"))
    text = f"{path}: the private key, for `signing_key` in [audit]\n{path}.pub: the public key {made.id}, for auditors"
    values = {"private": str(path), "public": f"{path}.pub", "id": made.id}
    print_answer("key", values, lambda: text, as_json=as_json)
