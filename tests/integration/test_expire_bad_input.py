"""`archiver expire` names obstacles, continues, and exits with 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.transforms import IdentityTransform

from archiver.config import load_config
from archiver.upkeep.holds import HoldKeeper
from tests.support.archive.two_topics import DAYS, EACH, PARTITIONS, TwoTopics, cut_short, gone, of_other_records
from tests.support.catalog.foreign_writes import table_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

OLDEST = 5
"""An offset in the first day's file."""
SPOILT: dict[str, tuple[Callable[[bytes], bytes | None], str, str]] = {
    "cut short": (cut_short, "BadSegment", "restore it from a backup"),
    "gone": (gone, "ObjectMissing", "Restore it"),
    "other digest": (of_other_records, "UpkeepError", "restore it from a backup"),
}


@pytest.fixture
def topics(stack: Stack) -> TwoTopics:
    return TwoTopics.archived(stack)


def begin(topics: TwoTopics, topic: str) -> list[int]:
    archive = topics.archive(topic)
    return [min(record.offset for record in archive if record.partition == number) for number in range(PARTITIONS)]


def test_damaged_edge_file_is_named_and_expire_continues(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    for low, (spoil, kind, advice) in zip(range(EACH, DAYS * EACH, EACH), SPOILT.values(), strict=True):
        path = topics.files(topics.bad)[1, low].file_path
        begins = low + OLDEST
        edge = ("expire", "--yes", topics.bad, topics.good, "--before", str(begins), "--rows")
        with topics.spoilt(path, spoil):
            done = topics.run(*edge, monkeypatch=monkeypatch)
            assert done.code == 1
            (failure,) = done.of(topics.bad)["failures"]
            assert (failure["file"], failure["error"]["kind"]) == (path, kind)
            context = failure["error"]["context"]
            assert (context["topic"], context["partitions"]) == (topics.bad, "[1]")
            assert advice in failure["error"]["message"]
            assert done.of(topics.bad)["first_offsets"] == {"0": begins, "1": low}
            assert done.of(topics.good)["first_offsets"] == {"0": begins, "1": begins}
            assert done.lines[-1]["succeeded"] is False
            result = topics.run(*edge, as_json=False, monkeypatch=monkeypatch)
            assert result.code == 1
            assert f"{topics.bad}: {path}: {kind}: " in result.text
            assert advice in result.text
        assert topics.exists(path)
        assert (begin(topics, topics.bad), begin(topics, topics.good)) == ([begins, low], [begins, begins])
        assert topics.run(*edge, monkeypatch=monkeypatch).code == 0
        assert begin(topics, topics.bad) == [begins, begins]


def test_a_file_whose_times_cannot_be_read_is_young(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file at the edge is read for the offset of a time, before anything is planned."""
    for day, case in enumerate(("cut short", "gone"), start=1):
        spoil, kind, _ = SPOILT[case]
        low = day * EACH
        path = topics.files(topics.bad)[1, low].file_path
        edge = ("expire", "--yes", topics.bad, topics.good, "--before", f"2026-01-{day + 1:02}T00:00:00Z", "--rows")
        with topics.spoilt(path, spoil):
            dry = topics.run(*edge, "--dry-run", monkeypatch=monkeypatch)
            assert (dry.code, [entry["file"] for entry in dry.of(topics.bad)["failures"]]) == (1, [path])
            done = topics.run(*edge, monkeypatch=monkeypatch)
            (failure,) = done.of(topics.bad)["failures"]
            assert (done.code, failure["file"], failure["error"]["kind"]) == (1, path, kind)
            assert failure["error"]["context"]["partition"] == "1"
            assert done.of(topics.bad)["first_offsets"] == {"0": low, "1": low}
            assert done.of(topics.good)["first_offsets"] == {"0": low, "1": low}
        assert begin(topics, topics.bad) == [low, low]


def test_a_damaged_file_that_is_old_as_a_whole_goes_unread(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    for end, (spoil, _, _) in zip(range(EACH, DAYS * EACH, EACH), SPOILT.values(), strict=True):
        path = topics.files(topics.bad)[1, end - EACH].file_path
        with topics.spoilt(path, spoil):
            done = topics.run("expire", "--yes", topics.bad, "--before", str(end), monkeypatch=monkeypatch)
            assert (done.code, done.of(topics.bad)["first_offsets"]) == (0, {"0": end, "1": end})
            assert not topics.exists(path), "no snapshot needs it"
        assert begin(topics, topics.bad) == [end, end]


def test_foreign_file_keeps_all_partitions_and_is_named(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifest doesn't name its records' partitions: it may have any."""
    path = topics.add_foreign()
    words = ("expire", "--yes", topics.bad, topics.good, "--before", str(EACH))
    done = topics.run(*words, monkeypatch=monkeypatch)
    assert done.code == 1
    assert done.of(topics.bad)["kept_partitions"] == {"0": path, "1": path}
    assert (done.of(topics.bad)["files"], done.of(topics.bad)["first_offsets"]) == (0, {})
    assert done.of(topics.good)["first_offsets"] == {"0": EACH, "1": EACH}
    assert len(topics.files(topics.bad)) == DAYS * PARTITIONS + 1
    result = topics.run(*words, as_json=False, monkeypatch=monkeypatch)
    assert result.code == 1
    assert f"{topics.bad}: partition 1: a file that can't go keeps more than that: {path}" in result.text
    assert "run `archiver registry rebuild`" in result.text


def test_a_hold_in_the_way_of_what_is_asked_for_is_named(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = HoldKeeper(load_config(topics.config)).place(
        topics.bad, partitions=(1,), start="12", end="14", reason="case 7"
    )
    before = topics.files(topics.bad)
    words = ("expire", "--yes", topics.bad, topics.good, "--before", str(3 * EACH))
    dry = topics.run(*words, "--dry-run", monkeypatch=monkeypatch)
    assert (dry.code, dry.of(topics.bad)["held_partitions"]) == (1, {"1": placed.hold.id})
    done = topics.run(*words, monkeypatch=monkeypatch)
    assert done.code == 1
    assert done.of(topics.bad)["held_partitions"] == {"1": placed.hold.id}
    assert done.of(topics.bad)["first_offsets"] == {"0": 30, "1": 10}
    assert done.of(topics.good)["first_offsets"] == {"0": 30, "1": 30}
    result = topics.run(*words, as_json=False, monkeypatch=monkeypatch)
    assert result.code == 1
    release = f"`archiver hold {topics.bad} --release {placed.hold.id}`"
    assert f"{topics.bad}: partition 1: hold {placed.hold.id} keeps more than that" in result.text
    assert release in result.text
    paths = [file.file_path for (partition, low), file in before.items() if partition == 1 and low >= EACH]
    assert len(paths) == DAYS - 1
    assert all(map(topics.exists, paths))
    assert begin(topics, topics.bad) == [30, 10]
    HoldKeeper(load_config(topics.config)).release(topics.bad, placed.hold.id)
    assert topics.run(*words, monkeypatch=monkeypatch).code == 0


def test_limits_of_the_configuration_reckon_with_holds(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the nightly run would fail as long as a hold lasts."""
    text = topics.config.read_text().replace('"snapshot_retention"', '"retention_size" = "1B"\n"snapshot_retention"')
    before, section, after = text.partition(f'[topics."{topics.bad}"]')
    topics.config.write_text(before + section + "\nhold = true" + after)
    done = topics.run("expire", "--yes", topics.bad, topics.good, monkeypatch=monkeypatch)
    assert done.code == 0
    assert done.of(topics.bad)["held_partitions"] == {"0": "config", "1": "config"}
    assert (done.of(topics.bad)["files"], done.of(topics.good)["files"]) == (0, (DAYS - 1) * PARTITIONS)
    result = topics.run("expire", as_json=False, monkeypatch=monkeypatch)
    assert f"{topics.bad}: partition 1: `hold = true` in the topic's section keeps more than that" in result.text
    asked = topics.run("expire", "--yes", topics.bad, "--before", "10", monkeypatch=monkeypatch)
    assert (asked.code, asked.of(topics.bad)["files"]) == (1, 0)
    assert begin(topics, topics.bad) == [0, 0]


def test_a_manifest_that_is_gone_stops_its_topic_alone(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(topics.stack, topics.config, topics.bad)
    path = table.current_snapshot().manifests(table.io)[0].manifest_path
    words = ("expire", "--yes", topics.bad, topics.good, "--before", str(EACH))
    with topics.spoilt(path, gone):
        done = topics.run(*words, monkeypatch=monkeypatch)
        assert done.code == 1
        error = done.of(topics.bad)["error"]
        assert (error["kind"], error["context"]["file"]) == ("ObjectMissing", path)
        assert done.of(topics.good)["first_offsets"] == {"0": EACH, "1": EACH}
        assert f"{topics.bad}: ObjectMissing: " in topics.run(*words, as_json=False, monkeypatch=monkeypatch).text
    assert topics.archive(topics.bad) == topics.kafka(topics.bad)
    assert topics.run(*words, monkeypatch=monkeypatch).code == 0


def test_foreign_partitioning_does_not_stop_retirements(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    with table_of(topics.stack, topics.config, topics.bad).update_spec() as update:
        update.add_field("kafka.partition", IdentityTransform(), "theirs")
    spec = topics.files(topics.bad)[0, EACH].spec_id
    done = topics.run("expire", "--yes", topics.bad, "--before", "15", "--rows", monkeypatch=monkeypatch)
    assert (done.code, done.of(topics.bad)["first_offsets"]) == (0, {"0": 15, "1": 15})
    assert topics.files(topics.bad)[0, 15].spec_id == spec
    assert topics.archive(topics.bad) == [record for record in topics.kafka(topics.bad) if record.offset >= 15]


def test_impossible_start_is_refused_before_the_question(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("latest", "yesterday", "-3"):
        done = topics.run("expire", "--yes", topics.bad, f"--before={before}", monkeypatch=monkeypatch)
        assert (done.code, done.text) == (2, ""), before
    assert topics.archive(topics.bad) == topics.kafka(topics.bad)
