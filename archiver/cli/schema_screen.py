"""Shows schemas on a terminal: a tree of columns, a table's history, and what a new schema would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from catalog.model import VersionRecord
from schema_mapping.columns.evolution import Change, ChangeKind
from schema_mapping.outline import ColumnOutline, Outline, RootOutline, type_name

_COLOURS = {
    ChangeKind.ADDED: "green",
    ChangeKind.RESTORED: "green",
    ChangeKind.REMOVED: "red",
    ChangeKind.DROPPED: "red",
    ChangeKind.REPLACED: "red",
    ChangeKind.CUT: "yellow",
}

_WORDS = {
    ChangeKind.ADDED: "+ {column} {after}",
    ChangeKind.RESTORED: "+ {column} {after}, which had been removed",
    ChangeKind.REMOVED: "- {column} {before}; the column stays, a value still sent goes to __unrecognized__",
    ChangeKind.DROPPED: "- {column} {before}; the column leaves the table, older files keep it",
    ChangeKind.KEPT: "+ {column} {after}, which had been dropped, stays in the table again",
    ChangeKind.RENAMED: "~ {column} was named {before}",
    ChangeKind.PROMOTED: "~ {column} {before} widens to {after}",
    ChangeKind.REPLACED: "! {column} {after} takes the place of the {before} column",
    ChangeKind.EXPANDED: "+ {column} has columns of its own now",
    ChangeKind.CUT: "- {column} is kept whole in __unrecognized__ now",
}


def outline_tree(topic: str, table: str, outline: Outline) -> Group:
    """Show the columns of key and value as trees, with every cut."""
    head = Text.assemble((topic, "bold"), f" in {table}, schema version {outline.version}")
    trees = [_root_tree(root) for root in outline.roots]
    cuts = [f"{column}  {each.protobuf}: {each.cut}" for column, each in cut_columns(outline)]
    if not cuts:
        return Group(head, *trees)
    return Group(
        head, *trees, Text("\nKept whole in __unrecognized__:", style="yellow"), *(Text(f"  {cut}") for cut in cuts)
    )


def cut_columns(outline: Outline) -> Iterator[tuple[str, ColumnOutline]]:
    """List the columns that hold a whole message as bytes, with their dotted names."""
    for root in outline.roots:
        yield from _cuts(root.name, root.columns)


def history_text(topic: str, records: Iterable[VersionRecord]) -> Group:
    """Show every version with its time and its changes."""
    parts = [Text(topic, style="bold")]
    for record in records:
        made = record.created.strftime("%Y-%m-%d %H:%M:%S UTC")
        parts.append(
            Text.assemble((f"version {record.version}", "bold"), f"  {made}  ", (record.fingerprint[:12], "dim"))
        )
        parts += changes_lines(record.changes) or [Text("  no column changed", style="dim")]
    return Group(*parts)


def changes_lines(changes: Iterable[Change]) -> list[Text]:
    """Make one line for each change."""
    return [Text(f"  {describe(change)}", style=_COLOURS.get(change.kind, "")) for change in changes]


def describe(change: Change) -> str:
    """Tell a change in words."""
    names = change.kind is ChangeKind.RENAMED
    before, after = (each if names or each is None else type_name(each) for each in (change.before, change.after))
    column = f"{change.column} (id {change.field_id})"
    return _WORDS[change.kind].format(column=column, before=before, after=after)


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
