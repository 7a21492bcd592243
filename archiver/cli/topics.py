"""`archiver topics`: lists the topics of the cluster, and which of them are configured and archived."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from archiver.cli.error_output import FAILED, print_error, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, Verbose, wants_json
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import NOTHING, Column, Listing

if TYPE_CHECKING:
    from archiver.setup.cluster_topics import ListedTopic, TopicList


def topics(
    names: Annotated[list[str] | None, typer.Argument(help="Topics, or patterns with * and ?. Default: all.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    json: AsJsonElsewhere = None,
    _verbose: Verbose = False,
) -> None:
    """List the cluster's topics with their partitions, records, configuration section and table.

    Topics that are configured or archived and that the cluster doesn't have are listed too. Changes nothing.
    """
    from archiver.config import load_config
    from archiver.setup.cluster_topics import list_topics

    as_json = wants_json(json)
    with reported(as_json=as_json):
        loaded = load_config(config)
        found = list_topics(loaded, names or ())
    if as_json:
        typer.echo(json_text.dumps(_json(found), indent=2, ensure_ascii=False))
    else:
        console = TextConsole()
        if found.topics:
            console.print(_listing(found))
        console.print(Text(_summary(found)))
    if found.registry_error is not None:
        print_error(found.registry_error, as_json=as_json)
        raise typer.Exit(FAILED)


def _listing(found: TopicList) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="partitions", alone="partitions: {}"),
        Column(heading="records, at most", alone="records, at most: {}"),
        Column(heading="section", alone="section: {}", kind="text"),
        Column(heading="archived to", alone="archived to: {}", kind="text"),
    )
    for each in found.topics:
        size = each.size
        listing.add(
            Text(each.topic, style="bold"),
            "not there" if size is None else _number(size.partitions),
            NOTHING if size is None else _number(size.offsets),
            each.section or NOTHING,
            "unknown" if found.registry_error else each.archived_to or NOTHING,
        )
    return listing


def _summary(found: TopicList) -> str:
    there = [each for each in found.topics if each.size is not None]
    without = sum(each.section is None for each in there)
    topics = f"{len(there):,} topic{'' if len(there) == 1 else 's'} in cluster {found.cluster_id}"
    if not without:
        return topics
    return (
        f"{topics}; {without:,} without a section: the configuration doesn't archive {'it' if without == 1 else 'them'}"
    )


def _json(found: TopicList) -> dict[str, Any]:
    return {"cluster_id": found.cluster_id, "topics": [_topic_json(each) for each in found.topics]}


def _topic_json(each: ListedTopic) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "in_cluster": each.size is not None,
        "partitions": None if each.size is None else each.size.partitions,
        "offsets": None if each.size is None else each.size.offsets,
        "section": each.section,
        "archived_to": each.archived_to,
    }


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
