"""Words for schema changes and misfits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import assert_never

from archiver.terminal.amounts import counted, share
from catalog.recognition import Doubt, Fit, Recognition
from schema_mapping.columns.evolution import Change, ChangeKind

_TOLD = {
    ChangeKind.ADDED: "added {column}, {after}",
    ChangeKind.RESTORED: "brought back {column}, {after}: the same column, with its older values",
    ChangeKind.REMOVED: "removed {column}: the column stays and keeps its values, newer rows have none in it",
    ChangeKind.DROPPED: "dropped {column}: the column left the table, files written before keep it",
    ChangeKind.KEPT: "took {column}, {after}, back into the table, which keeps removed columns again",
    ChangeKind.RENAMED: "renamed {before} to {column}: the same column, also in older rows",
    ChangeKind.PROMOTED: "widened {column} from {before} to {after}: older rows are read as {after}",
    ChangeKind.REPLACED: "changed {column} from {before} to {after}: a new column, the old one has another name",
    ChangeKind.EXPANDED: "gave {column} columns of its own, which was kept whole before",
    ChangeKind.CUT: "keeps {column} whole from here on, without columns of its own",
}
"""What a version did, for people. `column` is the name and the id."""

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


def tell(change: Change) -> str:
    return _told(change, _TOLD)


def describe(change: Change) -> str:
    return _told(change, _WORDS)


def new_version(version: int, changes: tuple[Change, ...]) -> str:
    text = "; ".join(map(describe, changes)) or "no column changes"
    return f"schema version {version} is new: {text}"


def waiting_remark(topic: str, changes: tuple[Change, ...]) -> str:
    """Without changes, none waits any more."""
    if not changes:
        return "no schema change waits for approval any more"
    words = "; ".join(map(describe, changes))
    return (
        f"a schema change breaks queries and waits for approval: {words}. Until then values that fit only the new"
        f" schema are kept raw. Approve it with `archiver schema approve {shlex.quote(topic)}`"
    )


def fit_remarks(recognition: Recognition) -> Iterator[str]:
    for part, fit in recognition.parts.items():
        misfits = [
            f"{fit.failed:,} not decoded" if fit.failed else "",
            f"{plain:,} decoded and kept raw" if (plain := fit.raw - fit.failed - fit.unapproved) > 0 else "",
            f"{fit.unapproved:,} kept raw until a schema change is approved and `archiver reprocess` ran"
            if fit.unapproved
            else "",
            f"{fit.unknown:,} with unknown fields ({share(fit.byte_share)} of the bytes)" if fit.unknown else "",
        ]
        if any(misfits):
            yield f"{counted(fit.values, part)}: {', '.join(filter(None, misfits))}"


def doubt_remark(topic: str, part: str, fit: Fit, doubt: Doubt) -> str:
    match doubt:
        case Doubt.FAILED:
            what = f"{fit.failed:,} of {counted(fit.values, part)} can't be decoded"
            why, option = "is the schema of another topic, or are they no messages?", ""
        case Doubt.BLANK:
            what = f"the schema knows no field of {fit.blank:,} of {counted(fit.values, part)}"
            why, option = "is it the schema of another message?", " --unrecognized"
        case Doubt.UNKNOWN:
            what = f"{fit.unknown:,} of {counted(fit.values, part)} have fields that the schema doesn't know"
            why = f"{share(fit.byte_share)} of the bytes. Have their producers a newer schema?"
            option = " --unrecognized"
        case _ as never:
            assert_never(never)
    return (
        f"{what}: {why} Every byte is kept; correct the schema, then `archiver reprocess {topic}{option}` fills the"
        " columns"
    )


def _told(change: Change, words: Mapping[ChangeKind, str]) -> str:
    from schema_mapping.outline import type_name

    names = change.kind is ChangeKind.RENAMED
    before, after = (value if names or value is None else type_name(value) for value in (change.before, change.after))
    column = f"{change.column} (id {change.field_id})"
    return words[change.kind].format(column=column, before=before, after=after)
