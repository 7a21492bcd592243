"""`archiver compact` names damage, continues, and exits with 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.manifest import FileFormat
from pyiceberg.transforms import IdentityTransform

from archiver.config import load_config
from archiver.upkeep.holds import HoldKeeper
from tests.support.archive.two_topics import DAYS, EACH, PARTITIONS, TwoTopics, cut_short, gone, of_other_records
from tests.support.catalog.foreign_writes import table_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

COMPACT = ("compact", "--min-files", "2")


@pytest.fixture
def topics(stack: Stack) -> TwoTopics:
    # By year: all files of a partition lie in one partition of the table.
    return TwoTopics.archived(stack, partition_by="year")


SPOILT: dict[str, tuple[Callable[[bytes], bytes | None], str, str]] = {
    "cut short": (cut_short, "BadSegment", "restore it from a backup"),
    "gone": (gone, "ObjectMissing", "Restore it"),
    "other digest": (of_other_records, "UpkeepError", "restore it from a backup"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_damaged_file_is_named_and_its_neighbours_go_on(
    topics: TwoTopics, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    spoil, kind, advice = SPOILT[case]
    before = topics.files(topics.bad)
    path = before[1, EACH].file_path
    with topics.spoilt(path, spoil):
        done = topics.run(*COMPACT, monkeypatch=monkeypatch)
        assert done.code == 1
        (failure,) = done.of(topics.bad)["failures"]
        assert (failure["files"], failure["error"]["kind"]) == ([path], kind)
        assert (failure["error"]["context"]["topic"], failure["error"]["context"]["partition"]) == (topics.bad, "1")
        assert failure["error"]["context"]["file"] == path
        assert advice in failure["error"]["message"]
        assert done.of(topics.good)["failures"] == []
        assert done.lines[-1]["succeeded"] is False
        assert sorted(topics.files(topics.good)) == [(0, 0), (1, 0)], "the other topic goes on"
        places = sorted(topics.files(topics.bad))
        assert places == [(0, 0), (1, 0), (1, EACH), (1, 2 * EACH)], "so do the other partition and the files above it"
        assert topics.files(topics.bad)[1, EACH].file_path == path
        result = topics.run(*COMPACT, as_json=False, monkeypatch=monkeypatch)
        assert result.code == 1, "as long as it isn't mended"
        assert f"{topics.bad}, partition 1: {path}: {kind}: " in result.text
        assert advice in result.text
    assert all(topics.exists(file.file_path) for file in before.values()), "nothing is removed"
    assert topics.run(*COMPACT, monkeypatch=monkeypatch).code == 0
    assert sorted(topics.files(topics.bad)) == [(0, 0), (1, 0)]
    for topic in (topics.bad, topics.good):
        assert topics.archive(topic) == topics.kafka(topic)


@pytest.mark.parametrize(
    ("file_format", "kind", "told"),
    [
        (FileFormat.PARQUET, "UpkeepError", "another engine wrote them"),
        (FileFormat.ORC, "UnknownFormat", "orc"),
    ],
)
def test_a_file_that_somebody_added_is_named_and_stays(
    topics: TwoTopics, monkeypatch: pytest.MonkeyPatch, file_format: FileFormat, kind: str, told: str
) -> None:
    path = topics.add_foreign(file_format)
    done = topics.run(*COMPACT, monkeypatch=monkeypatch)
    assert done.code == 1
    (failure,) = done.of(topics.bad)["failures"]
    error = failure["error"]
    assert (failure["files"], error["kind"], error["context"]["topic"]) == ([path], kind, topics.bad)
    assert told in failure["error"]["message"] + str(failure["error"]["context"])
    assert sorted(topics.files(topics.bad)) == [(-1, -1), (0, 0), (1, 0)], "it stays, and the others are put together"
    assert sorted(topics.files(topics.good)) == [(0, 0), (1, 0)]
    assert topics.exists(path)
    assert path in topics.run(*COMPACT, as_json=False, monkeypatch=monkeypatch).text


def test_a_delete_file_that_is_gone_keeps_only_its_own_file(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    path = topics.files(topics.bad)[1, EACH].file_path
    deletes = topics.delete_position(path, 3)
    with topics.spoilt(deletes, gone):
        dry = topics.run(*COMPACT, "--dry-run", monkeypatch=monkeypatch)
        assert (dry.code, [item["files"] for item in dry.of(topics.bad)["failures"]]) == (1, [[path]])
        done = topics.run(*COMPACT, monkeypatch=monkeypatch)
        assert done.code == 1
        (failure,) = done.of(topics.bad)["failures"]
        error = failure["error"]
        assert (failure["files"], error["kind"], error["context"]["file"]) == ([path], "ObjectMissing", deletes)
        assert (failure["error"]["context"]["topic"], failure["error"]["context"]["partition"]) == (topics.bad, "1")
        assert sorted(topics.files(topics.bad)) == [(0, 0), (1, 0), (1, EACH), (1, 2 * EACH)]
        assert sorted(topics.files(topics.good)) == [(0, 0), (1, 0)]
    done = topics.run(*COMPACT, monkeypatch=monkeypatch)
    assert (done.code, done.of(topics.bad)["removed_records"]) == (0, 1)
    left = [item for item in topics.kafka(topics.bad) if (item.partition, item.offset) != (1, EACH + 3)]
    assert topics.archive(topics.bad) == left


def test_a_manifest_that_is_gone_stops_its_topic_alone(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(topics.stack, topics.config, topics.bad)
    path = table.current_snapshot().manifests(table.io)[0].manifest_path
    with topics.spoilt(path, gone):
        done = topics.run(*COMPACT, monkeypatch=monkeypatch)
        assert done.code == 1
        error = done.of(topics.bad)["error"]
        assert (error["kind"], error["context"]["file"]) == ("ObjectMissing", path)
        assert sorted(topics.files(topics.good)) == [(0, 0), (1, 0)]
        assert f"{topics.bad}: ObjectMissing: " in topics.run(*COMPACT, as_json=False, monkeypatch=monkeypatch).text
    assert len(topics.files(topics.bad)) == DAYS * PARTITIONS
    assert topics.run(*COMPACT, monkeypatch=monkeypatch).code == 0
    assert topics.archive(topics.bad) == topics.kafka(topics.bad)


def test_files_move_to_no_partitioning_that_others_made(topics: TwoTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    with table_of(topics.stack, topics.config, topics.bad).update_spec() as update:
        update.add_field("kafka.partition", IdentityTransform(), "theirs")
    done = topics.run(*COMPACT, "--repartition", monkeypatch=monkeypatch)
    assert done.code == 1
    error = done.of(topics.bad)["error"]
    assert error["kind"] == "PartitioningChanged"
    assert topics.table_of(topics.bad) in error["context"]["table"]
    assert len(topics.files(topics.bad)) == DAYS * PARTITIONS
    assert sorted(topics.files(topics.good)) == [(0, 0), (1, 0)]
    text = topics.config.read_text()
    before, section, after = text.partition(f'[topics."{topics.good}"]')
    assert section
    topics.config.write_text(before + section + after.replace('"year"', '["year", "val.nowhere"]', 1))
    done = topics.run(*COMPACT, "--repartition", monkeypatch=monkeypatch)
    assert done.code == 1
    assert done.of(topics.good)["error"]["kind"] == "ConfigError"
    assert "val.nowhere" in str(done.of(topics.good)["error"])
    assert topics.archive(topics.good) == topics.kafka(topics.good)


def test_a_hold_is_in_no_compactions_way_as_that_removes_nothing(
    topics: TwoTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = topics.files(topics.bad)
    HoldKeeper(load_config(topics.config)).place(topics.bad, reason="case 7")
    done = topics.run(*COMPACT, monkeypatch=monkeypatch)
    assert done.code == 0
    assert sorted(topics.files(topics.bad)) == [(0, 0), (1, 0)]
    assert topics.archive(topics.bad) == topics.kafka(topics.bad)
    assert all(topics.exists(file.file_path) for file in before.values())
