"""Commands with one answer."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from rich.console import RenderableType

from archiver.access import ListedUser
from archiver.errors import StorageUnavailable
from archiver.storage.journal_sums import JournalSums
from archiver.terminal.answer import print_answer
from archiver.terminal.console import TextConsole
from archiver.terminal.hold_screen import hold_line, placed_json, placed_lines
from archiver.terminal.journal_screen import sums_json, sums_screen
from archiver.terminal.rebuild_screen import rebuild_screen
from archiver.terminal.users_screen import users_json, users_screen
from archiver.upkeep.holds import Placed
from archiver.upkeep.journal_upkeep import TableSums
from archiver.upkeep.rebuild.job import RebuiltTopic
from catalog.ranges.legal_holds import HeldSpan, Hold

USER = ListedUser("alice", ("SCRAM-SHA-256", "SCRAM-SHA-512"), 16_384, datetime(2026, 11, 1, 12, tzinfo=UTC))


def text_of(screen: RenderableType) -> str:
    console = TextConsole(file=io.StringIO())
    console.print(screen)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_users() -> None:
    assert text_of(users_screen([USER])) == (
        "alice: SCRAM-SHA-256, SCRAM-SHA-512, 16,384 iterations, since 2026-11-01T12:00:00Z\n"
    )
    assert text_of(users_screen([])) == "there are no users\n"
    assert users_json([USER])["users"] == [
        {
            "name": "alice",
            "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
            "iterations": 16_384,
            "changed_at": "2026-11-01T12:00:00+00:00",
        }
    ]


def test_journals() -> None:
    done = TableSums(
        table="kafka.orders",
        uuid=UUID(int=7),
        folder="s3://b/j",
        sums=JournalSums(before=300, summed=290, written=1, removed=280, kept=10),
        packed=5,
        error=StorageUnavailable("away"),
    )
    text = text_of(sums_screen(done))
    assert (
        "300 objects, 21 after it; 10 objects summed up that the store doesn't let go; 5 objects of the audit" in text
    )
    assert "StorageUnavailable: away" in text
    values = json.loads(json.dumps(sums_json(done)))
    assert (values["before"], values["after"], values["packed"], values["error"]["kind"]) == (
        300,
        21,
        5,
        "StorageUnavailable",
    )


def test_holds() -> None:
    hold = Hold(id="01H", spans=(HeldSpan(),), reason="case 12", placed_at="2026-11-01T12:00:00Z", placed_by="jane")
    placed = Placed(topic="orders", hold=hold, retired={0: 1_200}, erased=7, in_doubt=("A",))
    first, *lines = placed_lines(placed)
    assert first == hold_line("orders", hold)
    assert first.startswith("orders: 01H holds ")
    assert first.endswith(", placed 2026-11-01T12:00:00Z by jane: case 12")
    assert lines[:2] == [
        "partition 0: records before 1,200 were retired before",
        "7 of these offsets were erased before",
    ]
    assert "archiver reconcile orders" in lines[2]
    values = json.loads(json.dumps(placed_json(placed)))
    assert (values["retired_before"], values["erased_before"], values["removals_in_doubt"]) == ({"0": 1200}, 7, ["A"])


def test_rebuilds() -> None:
    rebuilt = RebuiltTopic(
        topic="orders", table="kafka.orders", schema_versions=2, ranges=1, staged=0, from_journal=True
    )
    assert text_of(rebuild_screen([rebuilt])) == (
        "orders in kafka.orders: 2 schema versions and 1 range restored (from the journal), 0 staged\n"
    )
    assert text_of(rebuild_screen([])) == "no topic of the configuration has a table\n"


@pytest.mark.parametrize("as_json", [True, False])
def test_an_answer_is_a_document_or_a_screen(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    print_answer("greeting", {"name": "Zoë"}, lambda: "a screen", as_json=as_json)
    text = capsys.readouterr().out
    if as_json:
        assert '"event": "greeting", "name": "Zoë"}\n' in text
        assert json.loads(text)["time"]
    else:
        assert text == "a screen\n"
