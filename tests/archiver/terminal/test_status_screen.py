"""The status of a topic."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import RenderableType

from archiver.commit.retention_consent import consent_missing, missing_consent
from archiver.config.model import TopicConfig
from archiver.errors import BrokerUnavailable, DataLoss, UnknownTopic
from archiver.kafka import OpenTransaction
from archiver.terminal.console import TextConsole
from archiver.terminal.status_screen import looked_screen, status_json, status_screen, status_table, watch_screen
from archiver.topics.state import PartitionStatus, TopicStatus
from catalog.errors import CatalogUnreachable
from catalog.model import FileState, StateCount
from catalog.ranges.holes import AlteredRange, GoneRows, Hole
from catalog.recognition import Doubt, Fit, Recognition
from catalog.registry.chores import ChoreState
from catalog.registry.retention_consents import RetentionConsent

WRITER = OpenTransaction(producer_id=7, producer_epoch=2, first_offset=120, last_timestamp=1, transactional_id="pay")
STATUS = TopicStatus(
    topic="orders",
    table="kafka.orders",
    partitions=(
        PartitionStatus(
            partition=0,
            archived_to=1_000,
            staged_to=1_500,
            staged_files=2,
            log_start=0,
            last_stable=12_000,
            high_watermark=12_500,
            lag_records=11_000,
            lag_seconds=7_300.4,
            open_transactions=(WRITER,),
        ),
        PartitionStatus(partition=1, problem=DataLoss("gone", lost="[1, 5)")),
    ),
    files={FileState.COMMITTED: StateCount(ranges=3, rows=9, size_bytes=27)},
    lost_offsets=4,
    holes=(Hole(range_id="A", partition=1, start_offset=10, end_offset=20, rows=3),),
    altered=(AlteredRange(range_id="B", partition=1, start_offset=20, end_offset=30, rows=10),),
    gone=GoneRows(erased=5, lost=6, retired=7),
)


def shown(status: TopicStatus, width: int = 110) -> str:
    console = TextConsole(width=width, file=io.StringIO())
    console.print(status_table(status))
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_people_see_offsets_lag_and_who_is_in_the_way() -> None:
    text = shown(STATUS)
    assert (
        "orders in kafka.orders: 11,000 records behind; files: 3 committed 4 offsets recorded as lost; 5 rows erased"
    ) in text
    assert "6 rows recorded as lost; 7 rows retired" in text
    for part in ("1,000", "1,500 (2 files)", "12,000", "12,500", "2.0 h"):
        assert part in text
    assert "open transaction from 120 on, of producer 7 epoch 2 (pay)" in text
    assert "DataLoss: gone" in text
    assert "partition 1: 3 rows of [10, 20) are missing from the table" in text
    assert "partition 1: [20, 30) doesn't hold the archived records any more" in " ".join(text.split())


def line(status: TopicStatus, *, width: int = 110) -> list[str]:
    console = TextConsole(width=width, file=io.StringIO())
    console.print(status_screen([status]))
    return [" ".join(text.split()) for text in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_a_topic_is_a_line_and_what_is_wrong_stands_below() -> None:
    head, topic, *remarks = line(STATUS)
    assert head == "topic records behind oldest archived size state"
    assert topic == "orders 11,000 2.0 h 9 27 B DataLoss"
    assert remarks[:2] == ["orders: DataLoss: gone", "lost: [1, 5)"]
    assert not any("partition 0 " in remark for remark in remarks if "transaction" not in remark)


def test_a_schema_that_hardly_fits_is_told() -> None:
    fit = Fit(values=10, size_bytes=1_000, failed=1, raw=3, unknown=8, unknown_bytes=250)
    partitions = (PartitionStatus(partition=0, archived_to=10),)
    doubted = TopicStatus(
        topic="orders",
        table="kafka.orders",
        partitions=partitions,
        recognition=Recognition(value=fit),
        doubts={"value": Doubt.UNKNOWN},
    )
    _, topic, *remarks = line(doubted, width=300)
    assert topic.endswith("schema in doubt")
    assert "8 of 10 values have fields that the schema doesn't know: 25.00 % of the bytes." in remarks[0]
    assert (
        "10 values: 1 not decoded, 2 decoded and kept raw, 8 with unknown fields (25.00 % of the bytes)" in remarks[1]
    )
    document = status_json(doubted)
    assert (document["doubts"], document["recognition"]["value"]["unknown"]) == ({"value": "unknown"}, 8)
    assert line(replace(doubted, recognition=Recognition(), doubts={}))[1].endswith("up to date")


def test_a_topic_that_was_not_seen_has_no_table() -> None:
    unseen = TopicStatus(topic="nope", table="kafka.nope", problem=UnknownTopic("no such topic"))
    for partitions in (False, True):
        console = TextConsole(width=110, file=io.StringIO())
        console.print(status_screen([unseen], partitions=partitions))
        assert console.file.getvalue().strip() == "nope: UnknownTopic: no such topic"  # type: ignore[attr-defined]


def test_tables_of_topics_stand_apart() -> None:
    console = TextConsole(width=80, file=io.StringIO())
    console.print(status_screen([STATUS, replace(STATUS, topic="payments")], partitions=True))
    first, second = console.file.getvalue().split("\n\n")  # type: ignore[attr-defined]
    assert first.startswith("orders in ")
    assert second.startswith("payments in ")


def test_a_look_among_others_has_its_time_and_trouble_first() -> None:
    quiet = replace(STATUS, topic="quiet", partitions=(PartitionStatus(partition=0),), holes=())
    console = TextConsole(width=110, file=io.StringIO())
    console.print(watch_screen([quiet, STATUS], None))
    console.print(watch_screen([], BrokerUnavailable("nobody answers")))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert re.fullmatch(r"\d\d:\d\d:\d\d", lines[0].strip())
    assert [text.split()[0] for text in lines[2:4]] == ["orders", "quiet"]
    assert lines[-1].strip() == "BrokerUnavailable: nobody answers"


def test_machines_get_plain_values() -> None:
    document = json.loads(json.dumps(status_json(STATUS)))
    assert (document["lag_records"], document["lag_seconds"], document["lost_offsets"]) == (11_000, 7_300.4, 4)
    assert (document["erased_records"], document["lost_records"], document["retired_records"]) == (5, 6, 7)
    assert document["holes"] == [{"partition": 1, "start_offset": 10, "end_offset": 20, "rows": 3}]
    assert document["files"] == {"committed": {"ranges": 3, "rows": 9, "size_bytes": 27, "files": 0}}
    assert document["partitions"][0]["open_transactions"][0]["transactional_id"] == "pay"
    assert document["partitions"][0]["problem"] is None
    assert document["partitions"][1]["problem"] == {
        "kind": "DataLoss",
        "message": "gone",
        "context": {"lost": "[1, 5)"},
        "retryable": False,
    }


@pytest.mark.parametrize("width", [50, 80])
def test_no_number_is_cut(width: int) -> None:
    many = replace(STATUS.partitions[0], archived_to=123_456_789, last_stable=987_654_321, lag_records=864_197_532)
    text = shown(replace(STATUS, partitions=(many,), holes=()), width)
    for part in ("123,456,789", "864,197,532", "864,197,532 records behind"):
        assert part in text
    assert "…" not in text


def test_the_price_of_partitions_is_told() -> None:
    few = StateCount(ranges=3, rows=90, size_bytes=270_000, files=30)
    assert "30 files in 3 ranges: 10.0 a range, of 9.0 kB on average" in shown(
        replace(STATUS, files={FileState.COMMITTED: few})
    )
    many = shown(replace(STATUS, files={FileState.COMMITTED: replace(few, files=300)}))
    assert "300 files in 3 ranges: 100.0 a range, of 900 B on average; fewer partitions, or a larger" in many
    large = replace(few, files=300, size_bytes=300 << 23)
    assert "fewer partitions" not in shown(replace(STATUS, files={FileState.COMMITTED: large}))
    assert "a range" not in shown(replace(STATUS, files={FileState.COMMITTED: replace(few, files=3)}))


def test_a_retention_that_waits_for_consent_is_a_problem() -> None:
    status = replace(STATUS, consent=consent_missing("orders", 'records of the last day may go by retention = "1h"'))
    assert status.consent in status.problems
    text = shown(status)
    assert "run `archiver expire orders --yes` once" in text
    assert status_json(status)["needs_consent"]["kind"] == "ConsentMissing"
    assert status_json(STATUS)["needs_consent"] is None


@pytest.mark.parametrize(
    ("settings", "consents", "waits"),
    [
        ({"retention": "1h"}, {}, True),
        ({"retention": "90d"}, {}, False),
        ({"retention": "90d"}, {'retention = "90d"': False}, True),
        ({"retention": "90d"}, {'retention = "90d"': True}, False),
        ({"retention": "90d"}, {'retention = "30d"': False}, False),
        ({"retention": "1h"}, {'retention = "1h"': True}, False),
        ({"retention": "1h", "expire": "off"}, {}, False),
        ({}, {}, False),
    ],
)
def test_only_automatic_retirement_waits(settings: dict[str, str], consents: dict[str, bool], waits: bool) -> None:
    config = TopicConfig.model_validate({"name": "orders", "table": "kafka.orders", "expire": "auto", **settings})
    registered = {limits: RetentionConsent(reason="most", is_given=given) for limits, given in consents.items()}
    assert (missing_consent(config, registered) is not None) is waits


def test_a_chore_that_fails_is_shown_until_it_succeeds() -> None:
    at = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
    failing = ChoreState(
        chore="compaction", cursor=7, behind=3, failures=2, failed_at=at, error="StorageUnavailable: away"
    )
    status = replace(STATUS, chores=(failing, ChoreState(chore="tidying", cursor=9, ended_at=at)))
    text = shown(status, width=300)
    assert (
        "compaction failed 2 times, last at 2026-11-01T12:30:00+00:00; archiving continues, and it is tried again:"
        " StorageUnavailable: away"
    ) in text
    assert "tidying" not in text
    assert failing not in status.problems
    assert json.loads(json.dumps(status_json(status)))["chores"] == [
        {
            "chore": "compaction",
            "cursor": 7,
            "behind": 3,
            "ended_at": None,
            "failures": 2,
            "failed_at": "2026-11-01T12:30:00+00:00",
            "error": "StorageUnavailable: away",
        },
        {
            "chore": "tidying",
            "cursor": 9,
            "behind": 0,
            "ended_at": "2026-11-01T12:30:00+00:00",
            "failures": 0,
            "failed_at": None,
            "error": None,
        },
    ]


AWAY = CatalogUnreachable("the catalog does not answer", uri="http://127.0.0.1:1")


def plain(screen: RenderableType) -> str:
    console = TextConsole(width=200, file=io.StringIO())
    console.print(screen)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_problem_of_several_topics_is_shown_once() -> None:
    topics = [replace(STATUS, topic=name, problem=AWAY, holes=(), altered=()) for name in ("orders", "clicks", "users")]
    text = plain(status_screen(topics))
    assert text.count("CatalogUnreachable: the catalog does not answer") == 1
    assert "3 topics (orders, clicks, users): CatalogUnreachable" in text


def test_what_the_registry_knows_is_shown_without_a_catalog() -> None:
    status = TopicStatus(topic="orders", table="kafka.orders", files=STATUS.files, problem=AWAY)
    (heading, topic, *_) = line(status)
    assert "records behind" in heading
    assert topic == "orders unknown - 9 27 B CatalogUnreachable"
    assert status_json(status)["lag_records"] is None


def test_what_is_archived_is_shown_without_kafka() -> None:
    partition = PartitionStatus(partition=0, archived_to=1_000, lag_records=None)
    status = TopicStatus(topic="orders", table="kafka.orders", partitions=(partition,), files=STATUS.files)
    error = BrokerUnavailable("No broker answers", addresses="127.0.0.1:9")
    text = " ".join(plain(looked_screen([status], error)).split())
    assert "orders unknown - 9 27 B unknown" in text
    assert "how far behind it is isn't known" in text
    assert text.count("BrokerUnavailable: No broker answers") == 1
    assert "1,000 - - - -" in " ".join(plain(looked_screen([status], error, partitions=True)).split())


def test_a_topic_that_is_wholly_retired_is_not_up_to_date() -> None:
    gone = TopicStatus(
        topic="orders", table="kafka.orders", partitions=(PartitionStatus(partition=0),), gone=GoneRows(retired=9)
    )
    assert line(gone)[1].endswith("all retired")
