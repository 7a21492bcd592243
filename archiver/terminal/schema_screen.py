"""Schemas: columns, history and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from archiver.terminal.schema_words import describe, tell
from archiver.topics.schema_approval import Approval
from archiver.upkeep.consent import RemovalQuestion
from catalog.model import VersionRecord
from schema_mapping.columns.compatibility import BrokenRule
from schema_mapping.columns.evolution import Change, ChangeKind
from schema_mapping.outline import ColumnOutline, Outline, RootOutline

_COLOURS = {
    ChangeKind.ADDED: "green",
    ChangeKind.RESTORED: "green",
    ChangeKind.REMOVED: "red",
    ChangeKind.DROPPED: "red",
    ChangeKind.REPLACED: "red",
    ChangeKind.CUT: "yellow",
}

_DONE = {
    **{kind: str(kind) for kind in ChangeKind},
    ChangeKind.RESTORED: "brought back",
    ChangeKind.PROMOTED: "widened",
    ChangeKind.REPLACED: "changed in type",
    ChangeKind.KEPT: "taken back",
    ChangeKind.EXPANDED: "given columns of their own",
    ChangeKind.CUT: "kept whole",
}


def outline_tree(topic: str, table: str, outline: Outline) -> Group:
    head = Text.assemble((topic, "bold"), f" in {table}, schema version {outline.version}")
    trees = [_root_tree(root) for root in outline.roots]
    cuts = [f"{column}  {outlined.protobuf}: {outlined.cut}" for column, outlined in cut_columns(outline)]
    if not cuts:
        return Group(head, *trees)
    return Group(
        head, *trees, Text("\nKept whole in __unrecognized__:", style="yellow"), *(Text(f"  {cut}") for cut in cuts)
    )


def cut_columns(outline: Outline) -> Iterator[tuple[str, ColumnOutline]]:
    for root in outline.roots:
        yield from _cuts(root.name, root.columns)


def history_text(topic: str, records: Iterable[VersionRecord]) -> Group:
    parts = [Text(topic, style="bold")]
    for record in records:
        made = record.created.strftime("%Y-%m-%d %H:%M:%S UTC")
        head = Text.assemble((f"Version {record.version}", "bold"), f", first used {made}: {summary(record.changes)}")
        parts.append(head.append(f"  {record.fingerprint[:12]}", style="dim"))
        parts += [Text(f"  {tell(change)}", style=_COLOURS.get(change.kind, "")) for change in record.changes]
    return Group(*parts)


def summary(changes: Iterable[Change]) -> str:
    """`2 columns added, 1 renamed`."""
    counts = Counter(change.kind for change in changes)
    if not counts:
        return "no column changed"
    first, *rest = sorted(counts.items(), key=lambda pair: list(ChangeKind).index(pair[0]))
    noun = "column" if first[1] == 1 else "columns"
    said = [f"{first[1]:,} {noun} {_DONE[first[0]]}", *(f"{count:,} {_DONE[kind]}" for kind, count in rest)]
    return ", ".join(said)


def changes_lines(changes: Iterable[Change]) -> list[Text]:
    return [Text(f"  {describe(change)}", style=_COLOURS.get(change.kind, "")) for change in changes]


def verdict_lines(broken: Sequence[BrokenRule]) -> list[Text]:
    if not broken:
        return [Text("Compatible: queries of the table go on as before.", style="green")]
    lines = [Text(f"  breaks rule {breach.rule}: {breach.change.column}: {breach.rule.meaning}") for breach in broken]
    return [Text("Not compatible:", style="bold red"), *lines]


def approval_question(approval: Approval) -> RemovalQuestion:
    return RemovalQuestion(
        verb="approve",
        topic=approval.topic,
        things=f"the new schema of {approval.topic}: {summary(approval.breaking)}",
        facts=tuple(map(describe, approval.changes)),
    )


def approval_lines(approval: Approval) -> list[Text]:
    topic = approval.topic
    if not approval.is_new:
        return [Text(f"{topic}: the schema is a known version: nothing waits for approval")]
    if not approval.breaking:
        return [Text(f"{topic}: the change breaks no query and needs no approval: the next records use it")]
    return [
        Text(f"{topic}: approved: {summary(approval.breaking)}", style="green"),
        *changes_lines(approval.changes),
        Text(f"The next records use it. `archiver reprocess {topic}` gives columns to the records kept raw until now."),
    ]


def _root_tree(root: RootOutline) -> Tree:
    what = root.message or "raw bytes"
    tree = Tree(Text.assemble((root.name, "bold"), (f"  #{root.field_id}", "cyan"), f"  {what}"))
    _grow(tree, root)
    return tree


def _grow(tree: Tree, struct: RootOutline | ColumnOutline) -> None:
    for column in struct.columns:
        branch = tree.add(_line(column))
        if column.removed is None:
            _grow(branch, column)
    for field in struct.excluded:
        line = Text(f"= {field.number} {field.source_name}: {field.protobuf}", style="blue")
        tree.add(line.append("  excluded (bytes in __unrecognized__)", style="yellow"))


def _line(column: ColumnOutline) -> Text:
    line = Text.assemble(column.name, (f"  #{column.field_id}", "cyan"), f"  {column.type}")
    if column.protobuf is not None:
        field = "" if column.number is None else f"{column.number} {column.source_name}: "
        line.append(f"  = {field}{column.protobuf}", style="blue")
    line.append(f"  since {column.since}", style="dim")
    if column.removed is not None:
        line.append(f"  {'dropped' if column.dropped else 'removed'} in {column.removed}", style="red")
    if column.cut is not None:
        line.append(f"  cut: {column.cut}", style="yellow")
    if column.doc is not None:
        line.append(f"  {column.doc}", style="italic dim")
    return line


def _cuts(scope: str, columns: Iterable[ColumnOutline]) -> Iterator[tuple[str, ColumnOutline]]:
    for column in columns:
        name = f"{scope}.{column.name}"
        if column.cut is not None:
            yield name, column
        yield from _cuts(name, column.columns)
