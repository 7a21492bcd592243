"""Metadata of records on the real stack: in conditions and holds, after rewrites and a lost registry, and erased."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import ConfigError, InjectedFault, NotArchived
from archiver.find import find
from archiver.records.where import Where
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.upkeep.archived_topic import find_archived, known_topics
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport, FilesSearched
from archiver.upkeep.holds import HoldKeeper
from archiver.upkeep.metadata import MetadataKeeper, NamedTargets
from archiver.upkeep.rebuild.job import Rebuild
from catalog.errors import MetadataRefused, RecordsHeld
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import file_name
from catalog.record_metadata import MetadataEntry
from catalog.registry import Registry
from tests.support.archive.forgotten import NAME, acts, objects_with_her, registry_with_her
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.metadata_entries import WAITS, entry_of
from tests.support.archive.regrouping import Workshop
from tests.support.catalog.foreign_writes import table_of, tag
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

RUNNER = CliRunner()
JANE = NamedTargets(keys=(NAME,))


def archived(stack: Stack) -> tuple[Path, str]:
    """Three files of ten records. Each fifth record is hers."""
    topic = stack.topic()
    config = stack.config({topic: {}})
    for start in (0, 10, 20):
        records = [
            {"key": NAME if n % 5 == 3 else b"k%d" % n, "value": random.Random(n).randbytes(50), "timestamp": n + 1}
            for n in range(start, start + 10)
        ]
        stack.produce(topic, *records)
        archive_once(config)
    return config, topic


def command(config: Path, *words: str) -> Result:
    return RUNNER.invoke(app, ["metadata", *words, "--config", str(config)])


def entries(config: Path, *words: str) -> list[dict[str, Any]]:
    done = command(config, *words)
    assert done.exit_code == 0, done.output
    listed: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return listed


def offsets(config: Path, topic: str, **options: Any) -> list[int]:
    batches = (batch for _, batch in find(load_config(config), [topic], **options))
    return sorted(offset for batch in batches for offset in batch.column("offset").to_pylist())


def erase(config: Path, topic: str, where: str | None, **options: Any) -> EraseReport:
    condition = None if where is None else Where.parse(where)
    settings = EraseOptions(clock=lambda: time.time() + 9 * 86_400, **options)
    return Erase(load_config(config), topic, condition, options=settings, engine=InlineEngine()).run()


def spans(first: int, last: int) -> NamedTargets:
    return NamedTargets(offsets={0: ((first, last + 1),)})


def test_commands_set_find_and_delete(stack: Stack) -> None:
    config, topic = archived(stack)
    dry = json.loads(command(config, "set", topic, "case=12", "--key", "k1", "--dry-run").stdout)
    assert (dry["dry_run"], [entry["value"] for entry in dry["entries"]]) == (True, ["12"])
    assert entries(config, "list", topic) == []
    entries(config, "set", topic, "case=11", "note=a = b", "--key", "k1", "--offsets", "0:8-12", "--offsets", "0:29")
    entries(config, "set", topic, "case=12", "--key", "k1", "--offsets", "0:8-12")
    assert [entry["value"] for entry in entries(config, "get", topic, "case", "--key", "k1")] == ["12"]
    assert [entry["value"] for entry in entries(config, "get", topic, "case", "--offsets", "0:12-20")] == ["12"]
    assert command(config, "get", topic, "case", "--key", "other").exit_code == 3
    assert offsets(config, topic, metadata=["case=12"]) == [1, 8, 9, 10, 11, 12]
    assert offsets(config, topic, metadata=["note=a = b"]) == [1, 8, 9, 10, 11, 12, 29]
    assert offsets(config, topic, where="meta['case'] = '12' and offset > 9") == [10, 11, 12]
    replayed = RUNNER.invoke(app, ["replay", topic, "--where", "meta['case'] = '11'", "--config", str(config)])
    assert [json.loads(line)["offset"] for line in replayed.stdout.splitlines()] == [29]
    counted = RUNNER.invoke(app, ["find", topic, "--meta", "case=12", "--count", "--config", str(config)])
    assert (counted.exit_code, json.loads(counted.stderr)["records"]) == (0, 6)
    with Workshop.of(config) as shop:
        path = shop.files()[1].path
    (of_file,) = entries(config, "set", topic, "loaded=twice", "--file", file_name(path))
    assert (of_file["first"], of_file["last"]) == (10, 19)
    Compact(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run()
    with Workshop.of(config) as shop:
        assert path not in [file.path for file in shop.files()]
    assert offsets(config, topic, metadata=["loaded=twice"]) == list(range(10, 20))
    entries(config, "delete", topic, "case", "--offsets", "0:8-12")
    assert offsets(config, topic, metadata=["case=12"]) == [1]
    past = entries(config, "history", topic, "case", "--offsets", "0:8")
    assert [entry["value"] for entry in past] == ["11", "12", None]
    assert [entry["deleted"] for entry in past] == [False, False, True]
    (act, *_) = acts(config, topic, "metadata")
    assert [part["name"] for part in act["entries"]] == ["case", "note"] * 3
    checked = RUNNER.invoke(app, ["audit", "check", topic, "--config", str(config)])
    (trail,) = json.loads(checked.stdout)["trails"]
    assert trail["is_whole"], checked.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "TOPIC", "case=12"), "Say what it is for"),
        (("set", "TOPIC", "case", "--key", "k"), "write each name once"),
        (("set", "TOPIC", "case=1", "case=2", "--key", "k"), "write each name once"),
        (("set", "TOPIC", "1=2", "--key", "k"), "begins with a letter"),
        (("set", "TOPIC", "case=1", "--offsets", "0:30"), "not archived"),
        (("set", "TOPIC", "case=1", "--offsets", "0:25-30"), "not archived"),
        (("set", "TOPIC", "case=1", "--offsets", "7:0"), "no such partition"),
        (("set", "TOPIC", "case=1", "--offsets", "0:9-8"), "before the first"),
        (("set", "TOPIC", "case=1", "--key", "0xf"), "two hexadecimal digits"),
        (("set", "TOPIC", "case=1", "--file", "nowhere.parquet"), "no such data file"),
        (("delete", "TOPIC", "case", "--key", "k"), "no such metadata"),
    ],
)
def test_bad_input_is_named_before_work(stack: Stack, bad_input: tuple[Path, str], words: Any, message: str) -> None:
    config, topic = bad_input
    done = command(config, *(topic if word == "TOPIC" else word for word in words))
    assert (done.exit_code, message in done.stderr) == (2, True), done.output
    assert entries(config, "history", topic) == []


@pytest.fixture(scope="module")
def bad_input(stack: Stack) -> tuple[Path, str]:
    return archived(stack)


def test_an_unknown_topic_gets_the_nearest_name(stack: Stack, bad_input: tuple[Path, str]) -> None:
    config, topic = bad_input
    config.write_text(config.read_text() + f'\n[topics."{topic}x"]\ntable = "kafka.none"\n')
    with pytest.raises(NotArchived, match=f"did you mean '{topic}'"):
        MetadataKeeper(load_config(config)).set(f"{topic}x", JANE, {"case": "1"})


def test_a_hold_covers_records_with_metadata(stack: Stack) -> None:
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    keeper.set(topic, JANE, {"case": "secret-12"})
    keeper.set(topic, spans(0, 1), {"case": "secret-12"})
    with pytest.raises(ConfigError, match="no archived record has such metadata"):
        HoldKeeper(load_config(config)).place(topic, metadata=["case=13"])
    placed = HoldKeeper(load_config(config)).place(topic, metadata=["case=secret-12"])
    assert [(span.start_offset, span.end_offset) for span in placed.hold.spans] == [
        (0, 2),
        *((n, n + 1) for n in range(3, 30, 5)),
    ]
    assert placed.hold.asked == "with metadata case"
    with pytest.raises(RecordsHeld):
        erase(config, topic, "key = 'k1'")
    with pytest.raises(ConfigError, match="takes no condition on metadata"):
        erase(config, topic, "meta['case'] = 'secret-12'")
    assert erase(config, topic, "key = 'k2'").rows == 1


@pytest.mark.parametrize("fault", [None, "before_commit", "after_commit"])
def test_an_erasure_reaches_metadata(stack: Stack, monkeypatch: pytest.MonkeyPatch, fault: str | None) -> None:
    """Her key is on a key and in values, of entries that were replaced and deleted too."""
    config, topic = archived(stack)
    keeper, her = MetadataKeeper(load_config(config)), NAME.decode()
    keeper.set(topic, JANE, {"case": "1", "mail": f"{her}@example.com"})
    keeper.set(topic, JANE, {"case": "2"})
    keeper.unset(topic, JANE, ["mail"])
    keeper.set(topic, spans(7, 9), {"note": f"complaint of {her}"})
    keeper.set(topic, spans(7, 9), {"note": "closed"})
    keeper.set(topic, spans(4, 7), {"note": "not hers"})
    keeper.set(topic, NamedTargets(keys=(b"k1",)), {"case": "3"})
    assert registry_with_her(config)
    tag(stack, config, topic, "kept")
    where = "header['none'] exists or offset in (3, 8, 13, 18, 23, 28)"  # it doesn't name her
    assert len(erase(config, topic, where, dry_run=True).metadata) == 6
    assert len(entries(config, "history", topic)) == 8
    if fault is not None:
        with monkeypatch.context() as kill:
            kill.setenv("ARCHIVER_FAULT", f"{fault}:raise")
            with pytest.raises(InjectedFault):
                erase(config, topic, where)
    done = erase(config, topic, where)
    assert not done.succeeded
    with pytest.raises(ConfigError, match="were erased"):
        keeper.set(topic, spans(8, 8), {"note": her})
    with table_of(stack, config, topic).manage_snapshots() as manage:
        manage.remove_tag("kept")
    assert erase(config, topic, None).succeeded
    assert objects_with_her(config) == []
    assert not registry_with_her(config)
    left = entries(config, "history", topic)
    assert [(entry["name"], entry["value"]) for entry in left] == [("note", "not hers"), ("case", "3")]
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert entries(fresh, "history", topic) == left


def test_a_named_key_without_records_is_erased(stack: Stack) -> None:
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    for key in (b"gone-jane", b"gone-john"):
        keeper.set(topic, NamedTargets(keys=(key,)), {"case": "1"})
    assert erase(config, topic, "key = 'gone-jane'").succeeded
    assert [entry["key"] for entry in entries(config, "history", topic)] == ["gone-john"]


def test_metadata_waits_for_an_open_search(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", "before_commit:raise")
        with pytest.raises(InjectedFault):
            erase(config, topic, "key = 'k1'")
    with pytest.raises(MetadataRefused, match="an erasure of the topic"):
        keeper.set(topic, JANE, {"case": "1"})
    assert erase(config, topic, "key = 'k1'").succeeded
    keeper.set(topic, JANE, {"case": "1"})


def test_a_lost_registry_gets_metadata_from_the_journal(stack: Stack) -> None:
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    keeper.set(topic, JANE, {"case": "1", "note": "n"})
    keeper.set(topic, spans(7, 9), {"case": "2"})
    keeper.unset(topic, JANE, ["note"])
    before = entries(config, "history", topic)
    fresh = without_registry(stack, config, with_journal=True)
    (rebuilt,) = Rebuild(load_config(fresh), [topic]).run()
    assert rebuilt.metadata == 4
    assert entries(fresh, "history", topic) == before
    assert Rebuild(load_config(fresh), [topic]).run()[0].metadata == 0
    MetadataKeeper(load_config(fresh)).set(topic, spans(7, 9), {"case": "3"})
    assert [entry["value"] for entry in entries(fresh, "list", topic, "case")] == ["1", "3"]
    with psycopg.connect(load_config(fresh).registry.dsn) as connection:  # as if its clock had been ahead
        connection.execute("UPDATE record_metadata SET set_at = set_at + interval '1 hour'")
    MetadataKeeper(load_config(fresh)).set(topic, spans(7, 9), {"case": "4"})
    assert [entry["value"] for entry in entries(fresh, "list", topic, "case")] == ["1", "4"]
    lost = without_registry(stack, config, with_journal=False)
    assert Rebuild(load_config(lost), [topic]).run()[0].metadata == 0


def test_the_number_of_entries_is_limited(stack: Stack) -> None:
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    keys = tuple(b"%d" % number for number in range(2_500))
    with pytest.raises(MetadataRefused, match="too much metadata"):
        keeper.set(topic, NamedTargets(keys=keys), dict.fromkeys("abcde", "v"))
    objects = ObjectStore.of(load_config(config).catalog)
    folder = f"{load_config(config).archive.journal}/metadata"
    assert objects.list(folder) == ()


class SetInTheMiddle:
    """A `set` of her key, as `archiver metadata set` does it, in steps."""

    def __init__(self, config: Path, topic: str, registry: Registry) -> None:
        loaded = load_config(config)
        (self.topic,) = known_topics(loaded, (topic,), registry)
        self.registry = registry
        with TableCatalog(loaded.catalog) as catalog:
            table = find_archived(loaded, topic, registry=registry, catalog=catalog, dry_run=True).table
        folder = Journal.of(loaded).of_table(table).metadata
        assert folder is not None
        self.folder = folder
        self.entries: tuple[MetadataEntry, ...] = ()

    def begin(self) -> None:
        entry = entry_of(NAME, "case", NAME.decode())
        self.entries = self.registry.metadata.add(self.topic, [entry], self.folder.path)

    def publish(self, write: Callable[[Sequence[MetadataEntry]], None]) -> None:
        self.registry.metadata.publish(self.topic, self.entries, write)


HERS = f"key = '{NAME.decode()}'"


@pytest.mark.parametrize("where", [HERS, "key = 'other'"])
def test_a_set_that_began_before_an_erasure_is_refused(stack: Stack, where: str) -> None:
    config, topic = archived(stack)
    with Registry(load_config(config).registry.dsn) as registry:
        running = SetInTheMiddle(config, topic, registry)
        running.begin()
        assert entries(config, "history", topic) == []
        assert erase(config, topic, where).succeeded
        with pytest.raises(MetadataRefused, match="run the command again"):
            running.publish(running.folder.write)
        assert running.folder.ids() == frozenset()
        assert entries(config, "history", topic) == []


def test_an_erasure_takes_the_object_of_a_killed_set(stack: Stack) -> None:
    config, topic = archived(stack)
    with Registry(load_config(config).registry.dsn) as registry:
        running = SetInTheMiddle(config, topic, registry)
        running.begin()

        def killed(written: Sequence[MetadataEntry]) -> None:
            running.folder.write(written)
            raise InjectedFault("killed")

        with pytest.raises(InjectedFault):
            running.publish(killed)
        assert len(running.folder.ids()) == 1
        Rebuild(load_config(config), [topic]).run()
        assert len(entries(config, "history", topic)) == 1
        assert erase(config, topic, HERS).succeeded
        assert running.folder.ids() == frozenset()
    assert objects_with_her(config) == []
    assert not registry_with_her(config)


def test_an_erasure_waits_for_a_set_that_writes(stack: Stack) -> None:
    config, topic = archived(stack)
    dsn = load_config(config).registry.dsn
    with Registry(dsn) as registry, ThreadPoolExecutor(1) as beside, psycopg.connect(dsn, autocommit=True) as watcher:
        running = SetInTheMiddle(config, topic, registry)
        running.begin()
        erasures = []

        def write(written: Sequence[MetadataEntry]) -> None:
            erasures.append(beside.submit(erase, config, topic, HERS))
            eventually(lambda: erasures[0].done() or watcher.execute(WAITS).fetchall())
            assert not erasures[0].done()
            running.folder.write(written)

        running.publish(write)
        assert erasures[0].result().succeeded
        assert running.folder.ids() == frozenset()
    assert entries(config, "history", topic) == []


def test_metadata_of_an_erasures_search_is_erased(stack: Stack) -> None:
    """No record has the key, so the erasure has no records."""
    config, topic = archived(stack)
    keeper, key = MetadataKeeper(load_config(config)), NamedTargets(keys=(b"gone-jane",))

    def observer(event: object) -> None:
        if isinstance(event, FilesSearched) and not keeper.listed(topic, key):
            keeper.set(topic, key, {"case": "1"})

    where = Where.parse("key = 'gone-jane'")
    report = Erase(load_config(config), topic, where, observer, engine=InlineEngine()).run()
    assert (report.succeeded, len(report.metadata)) == (True, 1)
    assert entries(config, "history", topic) == []


@pytest.mark.parametrize("later", ["changed", "removed"])
def test_metadata_in_a_former_journal_is_erased(stack: Stack, later: str) -> None:
    config, topic = archived(stack)
    MetadataKeeper(load_config(config)).set(topic, JANE, {"case": "1"})
    journal = load_config(config).archive.journal
    assert journal is not None
    before = ObjectStore.of(load_config(config).catalog).list(f"{journal}/metadata")
    assert len(before) == 1
    lines = config.read_text().splitlines()
    (line,) = (line for line in lines if journal in line)
    replaced = line.replace(journal, f"{journal}-new") if later == "changed" else ""
    config.write_text("\n".join(replaced if text == line else text for text in lines) + "\n")
    assert load_config(config).archive.journal == (f"{journal}-new" if later == "changed" else None)
    erase(config, topic, HERS)
    assert ObjectStore.of(load_config(config).catalog).list(f"{journal}/metadata") == ()


def test_a_rebuild_takes_erased_metadata_out_of_use(stack: Stack) -> None:
    """Of a database that was set back to before the erasure."""
    config, topic = archived(stack)
    keeper = MetadataKeeper(load_config(config))
    keeper.set(topic, JANE, {"case": "1"})
    keeper.set(topic, NamedTargets(keys=(b"k1",)), {"case": "2"})
    with psycopg.connect(load_config(config).registry.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE saved AS SELECT * FROM record_metadata")
        assert erase(config, topic, HERS).succeeded
        connection.execute("INSERT INTO record_metadata SELECT * FROM saved ON CONFLICT DO NOTHING")
    assert len(entries(config, "history", topic)) == 2
    Rebuild(load_config(config), [topic]).run()
    assert [entry["key"] for entry in entries(config, "history", topic)] == ["k1"]


def test_an_entry_erased_during_a_rebuild_stays_erased(stack: Stack) -> None:
    config, topic = archived(stack)
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = known_topics(load_config(config), (topic,), registry)
        read = [entry_of(b"a", "case", "1"), entry_of(b"b", "case", "1", seconds=1)]
        assert registry.metadata.restore(row, read, "file:///none", lambda: {read[1].id}) == 1
        assert [entry.target for entry in registry.metadata.load(row)] == [read[1].target]


def test_held_records_keep_their_metadata(stack: Stack) -> None:
    config, topic = archived(stack)
    MetadataKeeper(load_config(config)).set(topic, JANE, {"case": "1"})

    class Holding:
        asks = False

        def __call__(self, _question: object) -> bool:
            HoldKeeper(load_config(config)).place(topic)
            return True

    with pytest.raises(RecordsHeld):
        Erase(load_config(config), topic, Where.parse(HERS), engine=InlineEngine(), consent=Holding()).run()
    assert len(entries(config, "history", topic)) == 1


def test_a_file_gets_only_its_own_offsets(stack: Stack) -> None:
    """Several files share the offsets of a commit."""
    topic = stack.topic()
    config = stack.config({topic: {"partition_by": ["bucket(3, key.__raw__)"]}})
    stack.produce(topic, *({"key": b"k%d" % n, "value": b"v", "timestamp": n + 1} for n in range(10)))
    archive_once(config, topic, engine=InlineEngine())
    with Workshop.of(config) as shop:
        files = [file.path for file in shop.files()]
    assert len(files) > 1
    of_files: list[int] = []
    for path in files:
        listed = entries(config, "set", topic, "file=1", "--file", path, "--dry-run")
        of_files += [offset for entry in listed for offset in range(entry["first"], entry["last"] + 1)]
    assert sorted(of_files) == list(range(10))
