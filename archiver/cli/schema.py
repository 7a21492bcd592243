"""`archiver schema`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.cli.schema_infer import infer
from archiver.errors import ConfigError, ConsentMissing
from archiver.terminal.answer import print_answer
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import error_or_none
from schema_mapping.columns.compatibility import CompatibilityRule

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from archiver.cli.schema_diff import SchemaDiff
    from archiver.config import Config
    from archiver.errors import SchemaRegistryError
    from catalog.model import TopicRow
    from catalog.registry import Registry
    from schema_mapping.columns.ledger import LedgerState
    from schema_mapping.outline import Outline

schema_app = typer.Typer(help="The mapping of a topic's messages to columns, and its history.", no_args_is_help=True)

schema_app.command()(infer)

Topic = Annotated[str, typer.Argument(help="The Kafka topic.")]
ApproveYes = Annotated[bool, typer.Option("--yes", help="Approve without a question. Required without a terminal.")]


@schema_app.command()
def show(
    topic: Topic,
    ddl: Annotated[
        bool, typer.Option("--ddl", help="Print the Spark SQL that makes the topic's table. Makes nothing.")
    ] = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print the columns as a tree: id, type, Protobuf field, first version, and why columns are cut.

    With --ddl, for topics that are not archived yet: the first run takes over an empty table of these columns.
    """
    from archiver.topics.table_notes import table_notes
    from schema_mapping.outline import outline

    if ddl:
        with reported(as_json=as_json):
            made = _statement(config, topic)
            values: dict[str, object] = {"topic": topic, **asdict(made)}
            print_answer("schema_ddl", values, made.text, as_json=as_json, soft_wrap=True)
        return
    with reported(as_json=as_json), _archived(config, topic) as (settings, registry, row):
        state = registry.ledger.load(row)
        described, warnings = outline(state), table_notes(_newest_schema(state), settings.catalog)
        values = {"topic": topic, "table": row.table, **described.to_json(), "warnings": list(warnings)}
        print_answer("schema", values, lambda: _outline(topic, row.table, described, warnings), as_json=as_json)


def _outline(topic: str, table: str, outlined: Outline, warnings: Sequence[str]) -> RenderableType:
    from archiver.terminal.schema_screen import outline_tree

    remarks = (Text.assemble(("warning: ", "yellow"), warning) for warning in warnings)
    return Group(outline_tree(topic, table, outlined), *remarks)


def _newest_schema(state: LedgerState) -> Schema:
    from schema_mapping import ledger_schema, row_mapping_from_text

    newest = row_mapping_from_text(max(state.versions, key=lambda version: version.version).mapping)
    return ledger_schema(state.entries, newest)


@schema_app.command()
def history(
    topic: Topic, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, _verbose: Verbose = False
) -> None:
    """List the schema versions: first use, and columns added, renamed, widened or removed.

    Values themselves are never changed by a version: each row keeps the one that it was written with.
    """
    from archiver.terminal.schema_screen import history_text
    from archiver.terminal.schema_words import tell

    with reported(as_json=as_json), _archived(config, topic) as (_, registry, row):
        records = registry.ledger.history(row)
        versions = [
            {
                "version": record.version,
                "created": record.created.isoformat(),
                "fingerprint": record.fingerprint,
                "changes": [change.to_json() | {"text": tell(change)} for change in record.changes],
            }
            for record in records
        ]
        values = {"topic": topic, "table": row.table, "versions": versions}
        print_answer("schema_history", values, lambda: history_text(topic, records), as_json=as_json)


@schema_app.command()
def diff(
    topic: Annotated[
        str | None, typer.Argument(help="The topic, as Kafka names it; none with --from and --to.", show_default=False)
    ] = None,
    descriptors: Annotated[
        Path | None,
        typer.Option("--descriptors", help="A descriptor set or .proto file (default: what the configuration names)."),
    ] = None,
    message: Annotated[str | None, typer.Option("--message", help="The message type, if its name changes.")] = None,
    of_key: Annotated[bool, typer.Option("--key", help="The file describes the key, not the value.")] = False,
    old: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE|VERSION", help="Compare this file, or this version of the topic."),
    ] = None,
    new: Annotated[
        Path | None, typer.Option("--to", metavar="FILE|VERSION", help="The file or version that follows.")
    ] = None,
    imports: Annotated[
        list[Path] | None,
        typer.Option("--import", metavar="FOLDER", help="With --from: a folder for imports. Repeatable."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a change breaks queries of the table.")
    ] = False,
    allow: Annotated[
        list[CompatibilityRule] | None, typer.Option("--allow", help="With --check: a change to allow. Repeatable.")
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print the changes that a schema would make to the table. Changes nothing.

    The schema that the configuration names, or --descriptors, is compared with the last version that records use, or
    with the version of --from. With a topic and two numbers, --from and --to compare any two of its versions.

    Without a topic, --from and --to compare two files, as if all rows had been written with the first. This needs no
    configuration and no server.

    With --check, for continuous integration: exits with 1 if columns that queries use would be renamed, removed,
    dropped, replaced (another type) or cut. Added and widened columns break nothing.
    """
    from archiver.terminal.schema_screen import verdict_lines
    from schema_mapping.columns.compatibility import broken_rules

    with reported(as_json=as_json):
        if allow and not check:
            raise ConfigError("--allow goes with --check")
        sides = _Sides(old=old, new=new, topic=topic, message=message, imports=tuple(imports or ()))
        compared = _compare(sides, config, descriptors, of_key=of_key)
        difference, down = compared.diff, compared.schema_registry_down
        if check and down is not None:
            raise down
        broken = broken_rules(difference.changes, allowed=allow or ()) if check else ()
        verdict = {"compatible": not broken, "broken": [rule.to_json() for rule in broken]} if check else {}
        print_answer(
            "schema_diff",
            {**compared.subject, **difference.to_json(), "schema_registry_down": error_or_none(down), **verdict},
            lambda: _diff_screen(compared, verdict_lines(broken) if check else ()),
            as_json=as_json,
        )
    if broken:
        raise typer.Exit(FAILED)


@schema_app.command()
def approve(
    topic: Topic,
    config: ConfigPath = DEFAULT_CONFIG,
    yes: ApproveYes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Approve a schema change that breaks queries, after a question; without a terminal it needs --yes.

    The approval counts for the schema as it is now. The next records use it, and `archiver reprocess` gives columns to
    the records that were kept raw until now.
    """
    from archiver.audit.trail import author
    from archiver.cli.consent import consent_or_none
    from archiver.schemas.topic_schemas import TopicSchemas
    from archiver.terminal.schema_screen import approval_lines, approval_question
    from archiver.topics.schema_approval import approve_change

    with reported(as_json=as_json):
        ask = consent_or_none(yes=yes)
        if ask is None:
            raise ConsentMissing(
                "`archiver schema approve` needs consent, and there is no terminal for a question: give --yes."
                " Nothing was done"
            )
        with _archived(config, topic) as (loaded, registry, row):
            schemas = TopicSchemas.read_or_recall(
                loaded.topic(topic), loaded.schema_registry, known=row, registry=registry
            )
            if schemas.schema_registry_down is not None:
                raise schemas.schema_registry_down
            approval = approve_change(
                row,
                schemas,
                registry,
                consent=lambda asked: ask(approval_question(asked)),
                by=author(loaded.audit).principal,
            )
        if approval.breaking and not approval.is_approved:
            raise ConsentMissing("the question was not answered with yes: nothing was approved", topic=topic)
        values = {"topic": topic, "table": row.table, **approval.to_json()}
        print_answer("schema_approved", values, lambda: Group(*approval_lines(approval)), as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    subject: dict[str, str]
    headline: str
    diff: SchemaDiff
    schema_registry_down: SchemaRegistryError | None = None


def _diff_screen(compared: _Compared, verdict: Sequence[Text]) -> RenderableType:
    from archiver.terminal.schema_screen import changes_lines

    down: list[Text] = []
    if compared.schema_registry_down is not None:
        error = error_text(compared.schema_registry_down)
        down.append(Text.assemble(("By the schemas last known: ", "yellow"), error))
    cuts = (Text(f"  cut: {cut}") for cut in compared.diff.cuts)
    return Group(*down, Text(compared.headline), *changes_lines(compared.diff.changes), *cuts, *verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Two files, or versions. `message` and `imports` belong to files."""

    old: Path | None
    new: Path | None
    topic: str | None
    message: str | None
    imports: tuple[Path, ...]

    @property
    def are_versions(self) -> bool:
        return _is_version(self.old) and (self.new is None or _is_version(self.new))


def _compare(sides: _Sides, config: Path, descriptors: Path | None, *, of_key: bool) -> _Compared:
    """Raises ConfigError."""
    topic, message = sides.topic, sides.message
    if topic is not None and sides.are_versions:
        if sides.new is not None and (descriptors or of_key or sides.imports or message):
            raise ConfigError("--from and --to compare two versions: no file and no message goes with them")
        versions = (int(str(sides.old)), None if sides.new is None else int(str(sides.new)))
        return _proposed(config, topic, descriptors, message, of_key=of_key, versions=versions)
    if topic is None and (_is_version(sides.old) or _is_version(sides.new)):
        raise ConfigError("name the topic whose versions --from and --to are; a file needs another name")
    if sides.old is not None or sides.new is not None:
        beside = {"a topic": topic, "--descriptors": descriptors, "--key": of_key}
        return _files(sides.old, sides.new, message, sides.imports, beside)
    if topic is None:
        raise ConfigError("Name a topic, or two files: --from OLD --to NEW")
    if sides.imports:
        raise ConfigError("--import goes with --from; for a topic set `imports` in its section", topic=topic)
    return _proposed(config, topic, descriptors, message, of_key=of_key)


def _is_version(value: Path | None) -> bool:
    return value is not None and str(value).isdecimal()


def _proposed(
    path: Path,
    topic: str,
    file: Path | None,
    message: str | None,
    *,
    of_key: bool,
    versions: tuple[int | None, int | None] = (None, None),
) -> _Compared:
    from archiver.cli.schema_diff import Schemas, compare, compare_since, proposed_schemas
    from archiver.schemas.topic_schemas import TopicSchemas

    with _archived(path, topic) as (loaded, registry, row):
        settings = loaded.topic(topic)
        state = registry.ledger.load(row)
        down: SchemaRegistryError | None = None
        base, target = versions
        proposed: Schemas | int
        if target is not None:
            proposed = target
        elif file is None:
            today = TopicSchemas.read_or_recall(settings, loaded.schema_registry, known=row, registry=registry)
            proposed, down = Schemas(key=today.key, value=today.value), today.schema_registry_down
        else:
            proposed = proposed_schemas(settings, state, file=file, message=message, of_key=of_key)
        base = base if base is not None else registry.files.last_version(row)
        if isinstance(proposed, Schemas) and base in (None, state.newest):
            difference = compare(state, proposed, settings)
        else:
            assert base is not None
            difference = compare_since(state, base, proposed, settings)
        return _Compared(
            subject={"topic": topic, "table": row.table},
            headline=f"{topic} in {row.table}: {difference.summary}",
            diff=difference,
            schema_registry_down=down,
        )


def _files(
    old: Path | None, new: Path | None, message: str | None, imports: Sequence[Path], beside: Mapping[str, object]
) -> _Compared:
    """Raises ConfigError for options in `beside`, which belong to a table."""
    from archiver.cli.schema_diff import compare_files
    from archiver.terminal.schema_screen import summary

    if old is None or new is None:
        raise ConfigError("--from and --to go together: the schema before and the one after")
    if given := [name for name, value in beside.items() if value]:
        raise ConfigError(f"--from and --to compare two files: {', '.join(given)} doesn't go with them")
    if message is None:
        raise ConfigError("Name the message that the files describe with --message, such as shop.Order")
    difference = compare_files(old, new, message=message, imports=imports)
    headline = summary(difference.changes) if difference.is_new else "the same schema"
    return _Compared(
        subject={"from": str(old), "to": str(new), "message": message},
        headline=f"{message}, from {old} to {new}: {headline}",
        diff=difference,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatement:
    table: str
    ddl: str
    warnings: tuple[str, ...]

    def text(self) -> Text:
        return Text("".join(f"-- warning: {warning}\n" for warning in self.warnings) + f"{self.ddl};")


def _statement(path: Path, topic: str) -> TableStatement:
    from archiver.config import load_config
    from archiver.schemas import mapping_options
    from archiver.schemas.topic_schemas import TopicSchemas
    from archiver.topics.partitioning import partition_source
    from archiver.topics.table_notes import table_notes
    from catalog.iceberg.create_statement import create_statement
    from catalog.registry import Registry
    from schema_mapping import LedgerState, assign

    loaded = load_config(path)
    settings = loaded.topic(topic)
    with Registry(loaded.registry.dsn, connections=1) as registry:
        rows = (row for row in registry.topics.every() if (row.topic, row.table) == (topic, settings.table))
        row = next(rows, None)
        state = LedgerState() if row is None else registry.ledger.load(row)
        read = TopicSchemas.read_or_recall(settings, loaded.schema_registry, known=row, registry=registry)
    assigned = assign(
        state,
        key=read.key,
        value=read.value,
        options=mapping_options(settings),
        partition_source=partition_source(settings, None),
    )
    return TableStatement(
        table=settings.table,
        ddl=create_statement(settings.table, assigned.iceberg_schema),
        warnings=table_notes(assigned.iceberg_schema, loaded.catalog),
    )


@contextmanager
def _archived(path: Path, topic: str) -> Iterator[tuple[Config, Registry, TopicRow]]:
    """Raises NotArchived without a row or columns."""
    from archiver.config import load_config
    from archiver.upkeep.archived_topic import known_topics, not_archived
    from catalog.registry import Registry

    loaded = load_config(path)
    with Registry(loaded.registry.dsn, connections=1) as registry:
        (row,) = known_topics(loaded, (topic,), registry)
        if not registry.ledger.history(row):
            raise not_archived(topic, row.table)
        yield loaded, registry, row
