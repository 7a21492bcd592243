"""Plays a history, and judges after each act."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import methodcaller
from random import Random
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from archiver.upkeep.retire.cut import RetireLimits
from tests.chaos.acts import Act, Verb
from tests.chaos.commands import Commands
from tests.chaos.judge import Violation, judge, judge_advice, judge_rows, judge_store, judge_verdict
from tests.chaos.model import Model, RecordState
from tests.chaos.other_engine import Place, places_of
from tests.chaos.said import Said, said_by
from tests.chaos.scene import Scene

_MOST_DELETED: Final = 12
_MOST_PICKED: Final = 6
_MOST_REFILLS: Final = 2
"""A refill from files may need another one, from Kafka."""


class HistoryPlayer:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.model = Model()
        self.notes: list[str] = []
        self.is_over = False

    def play(self, act: Act) -> None:
        """Raise Violation if the verdict is wrong."""
        self.notes.append(str(act))
        noise = Random(act.noise)
        if not self.model.states and act.verb is not Verb.ARCHIVE:
            return
        try:
            _ACTS[act.verb](self, act, noise)
            if not self.is_over:
                judge(self.scene, self.model)
                self._note_snapshot()
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"an error that no command should end with: {type(error).__name__}: {error}") from error

    def ours(self, act: Act, command: Callable[[Commands], Any], *, leaving: Iterable[Place] = ()) -> Said:
        """Run a command, first with an act's error. `leaving` rows may go."""
        if act.is_faulty:
            with self.scene.error(act.verb, Random(act.noise + 1)) as (commands, error):
                said = self.scene.run(command, commands)
            self.notes.append(f"    {error}: {said}")
            self._judge_between(leaving)
        said = self.scene.run(command, self.scene.commands)
        self.notes.append(f"    {said}")
        if not self.model.alien:
            judge_advice(said.texts)
        return said

    def _judge_between(self, leaving: Iterable[Place]) -> None:
        rows = self._rows()
        if lost := set(self.model.live) - set(rows) - set(leaving):
            raise Violation(f"rows are lost after an error: {sorted(lost)}")
        if len(rows) > len(set(rows)):
            raise Violation("rows are in the table more than once after an error")

    def _rows(self) -> list[Place]:
        return [place for file in self.scene.other.files() for place in places_of(file.live)]

    def _note_snapshot(self) -> None:
        snapshot = self.scene.table().current_snapshot()
        if snapshot is not None:
            self.model.snapshots[snapshot.snapshot_id] = frozenset(self.model.live)

    def _must_succeed(self, said: Said) -> None:
        if self.model.is_intact and self.model.knows_all and not said.succeeded:
            raise Violation(f"a command fails on a table that is right: {said}")

    # What the archiver does

    def archive(self, act: Act, noise: Random) -> None:
        model = self.model
        if noise.random() < 0.85 or not model.states:
            model.kafka = {(record.partition, record.offset): record for record in self.scene.produce(noise)}
        said = self.ours(act, methodcaller("archive"))
        if model.is_intact and model.knows_all:
            self._must_succeed(said)
            model.put(model.waiting, RecordState.LIVE)
            return
        if said.succeeded and model.missing and model.knows_all:
            raise Violation(f"archive says nothing of the missing rows: {model.missing[:9]}")
        self._take_new()
        if model.waiting and not model.is_set_back:
            raise Violation(f"archive leaves {len(model.waiting)} records that Kafka has: {said}")

    def compact(self, act: Act, noise: Random) -> None:
        few = noise.choice((2, 2, 5))
        self._must_succeed(self.ours(act, methodcaller("compact", min_files=few)))

    def repartition(self, act: Act, noise: Random) -> None:
        self.scene.change_terms(noise)
        self._must_succeed(self.ours(act, methodcaller("repartition")))

    def compact_repartition(self, act: Act, noise: Random) -> None:
        self._must_succeed(self.ours(act, methodcaller("compact", repartition=True)))

    def expire(self, act: Act, noise: Random) -> None:
        self._expire(act, noise, rows=False)

    def expire_rows(self, act: Act, noise: Random) -> None:
        self._expire(act, noise, rows=True)

    def _expire(self, act: Act, noise: Random, *, rows: bool) -> None:
        model, before = self.model, dict(self.model.first_offsets)
        partition = noise.choice(model.partitions)
        low, end = before.get(partition, 0), model.end(partition)
        cut = low + int((end - low) * noise.choice((0.1, 0.3, 0.5)))
        limits = RetireLimits(offset=cut, partitions=frozenset({partition}))
        leaving = [place for place in model.states if place[0] == partition and place[1] < cut]
        said = self.ours(act, methodcaller("expire", limits, rows=rows), leaving=leaving)
        after = self.scene.first_offsets
        for number in {*before, *after}:
            most = max(before.get(number, 0), cut if number == partition else 0)
            if not before.get(number, 0) <= after.get(number, 0) <= most:
                raise Violation(
                    f"partition {number} began at {before.get(number, 0)}, and at {after.get(number)} now: {cut}"
                )
        self._must_succeed(said)
        begins = after.get(partition, 0)
        if rows and said.succeeded and model.is_intact and cut > low and begins != cut:
            raise Violation(f"expire --rows succeeded, and partition {partition} begins at {begins}, not at {cut}")
        model.retired(after)

    def erase(self, act: Act, noise: Random) -> None:
        model = self.model
        live = model.live
        if not live:
            return
        partition, offset = noise.choice(live)
        if noise.random() < 0.6:
            count = noise.choice((1, 1, 5))
            where = f"partition = {partition} and offset >= {offset} and offset < {offset + count}"
            chosen = [(partition, number) for number in range(offset, offset + count)]
        else:
            key = b"k%d" % noise.randrange(7)
            where = f"key = '{key.decode()}'"
            chosen = [place for place in live if model.kafka[place].key == key]
        chosen = [place for place in chosen if model.states.get(place) is RecordState.LIVE]
        said = self.ours(act, methodcaller("erase", where), leaving=chosen)
        if said.report is not None and said.report.finished and said.succeeded:
            judge_store(self.scene.other.stored(chosen))
        if model.missing or model.is_set_back:
            if said.succeeded and chosen and model.missing:
                raise Violation("an erasure goes on though rows are missing that may be meant")
            model.put(set(chosen) - set(self._rows()), RecordState.ERASED)
            return
        self._must_succeed(said)
        if said.succeeded:
            model.put(chosen, RecordState.ERASED)
        else:
            model.put(set(chosen) - set(self._rows()), RecordState.ERASED)

    def refill(self, act: Act, noise: Random) -> None:
        model = self.model
        for _ in range(_MOST_REFILLS):
            said = self.ours(act, methodcaller("refill"))
            model.put(set(self._rows()) & set(model.missing), RecordState.LIVE)
            if said.succeeded or not any("run it again" in text for text in said.texts):
                break
        if model.missing:
            raise Violation(f"refill leaves {len(model.missing)} rows that Kafka has: {said}")
        if not said.succeeded and model.knows_all:
            raise Violation(f"refill brought everything back and fails: {said}")
        model.is_set_back = False

    def accept(self, act: Act, noise: Random) -> None:
        model = self.model
        if model.is_set_back or not model.missing:
            return
        said = self.ours(act, methodcaller("refill", accept_removed=True))
        if not said.succeeded:
            raise Violation(f"rows that other engines deleted can't be accepted as gone: {said}")
        model.put(set(self._rows()) & set(model.missing), RecordState.LIVE)
        model.put(model.missing, RecordState.ACCEPTED)

    def reprocess(self, act: Act, noise: Random) -> None:
        if self.scene.plan.is_decoded:
            self._must_succeed(self.ours(act, methodcaller("reprocess")))

    def reconcile(self, act: Act, noise: Random) -> None:
        self._must_succeed(self.ours(act, methodcaller("reconcile")))
        self._take_new()

    def orphans(self, act: Act, noise: Random) -> None:
        self._must_succeed(self.ours(act, methodcaller("orphans")))

    def sum_up(self, act: Act, noise: Random) -> None:
        self._must_succeed(self.ours(act, methodcaller("sum_up")))

    def rebuild(self, act: Act, noise: Random) -> None:
        self._rebuild(act, with_journal=True)

    def rebuild_bare(self, act: Act, noise: Random) -> None:
        self.model.knows_all = False
        self._rebuild(act, with_journal=False)

    def _rebuild(self, act: Act, *, with_journal: bool) -> None:
        self.scene.lose_registry(with_journal=with_journal)
        said = self.ours(act, methodcaller("rebuild"))
        if not said.succeeded:
            raise Violation(f"the registry can't be rebuilt: {said}")

    def _take_new(self) -> None:
        self.model.put(set(self._rows()) & set(self.model.waiting), RecordState.LIVE)

    # What another engine does

    def delete_copied(self, act: Act, noise: Random) -> None:
        self._delete(noise, self.scene.other.delete_copied)

    def delete_positions(self, act: Act, noise: Random) -> None:
        granular = noise.random() < 0.5
        self._delete(noise, lambda places: self.scene.other.delete_positions(places, granular=granular))

    def delete_equal(self, act: Act, noise: Random) -> None:
        self._delete(noise, self.scene.other.delete_equal)

    def _delete(self, noise: Random, delete: Callable[[Sequence[Place]], None]) -> None:
        live = self.model.live
        if not live:
            return
        first = noise.randrange(len(live))
        places = live[first : first + noise.randrange(1, _MOST_DELETED)]
        delete(places)
        self.model.deleted(places)

    def delete_file(self, act: Act, noise: Random) -> None:
        files = self.scene.other.files()
        if files:
            file = min(files, key=lambda entry: min(places_of(entry.rows)) if noise.random() < 0.5 else (99, 0))
            self.scene.other.remove_files(lambda entry: entry.data.file_path == file.data.file_path)
            self.model.deleted(places_of(file.live))

    def rewrite(self, act: Act, noise: Random) -> None:
        share = noise.choice((0.5, 1.0, 1.0))
        self.scene.other.rewrite(chosen=lambda _: noise.random() < share)

    def split(self, act: Act, noise: Random) -> None:
        cut = noise.choice((_by_kafka_partition, lambda rows: _chunks(rows, noise.randrange(3, 30))))
        self.scene.other.rewrite(cut)

    def shuffle(self, act: Act, noise: Random) -> None:
        def shuffled(rows: pa.Table) -> Iterable[pa.Table]:
            order = list(range(rows.num_rows))
            noise.shuffle(order)
            yield rows.take(pa.array(order[::-1] if noise.random() < 0.5 else order, pa.int64()))

        self.scene.other.rewrite(shuffled)

    def roll_back(self, act: Act, noise: Random) -> None:
        current = self.scene.table().current_snapshot()
        candidates = [snapshot for snapshot in self._known_snapshots() if current and snapshot != current.snapshot_id]
        if candidates:
            self._set_main(noise.choice(candidates[-4:]))

    def roll_forward(self, act: Act, noise: Random) -> None:
        newest = max(self.scene.table().metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
        if newest.snapshot_id in self._known_snapshots():
            self._set_main(newest.snapshot_id)

    def _known_snapshots(self) -> list[int]:
        standing = {snapshot.snapshot_id for snapshot in self.scene.table().metadata.snapshots}
        allowed = {*self.model.live, *self.model.missing}
        return [
            snapshot_id
            for snapshot_id, places in self.model.snapshots.items()
            if snapshot_id in standing and places <= allowed
        ]

    def _set_main(self, snapshot_id: int) -> None:
        self.scene.set_main(snapshot_id)
        self.model.set_to(self.model.snapshots[snapshot_id], is_set_back=self.scene.lacks_commits)
        self.notes.append(f"    to snapshot {snapshot_id}, {len(self.model.missing)} rows are missing")

    def cherry_pick(self, act: Act, noise: Random) -> None:
        table, model = self.scene.table(), self.model
        line = list(ancestors_of(table.current_snapshot(), table.metadata))
        starts = [index for index, snapshot in enumerate(line) if snapshot.snapshot_id in self._known_snapshots()]
        starts = [index for index in starts if 0 < index <= _MOST_PICKED]
        if not starts:
            return
        start = noise.choice(starts)
        after = model.snapshots[line[start].snapshot_id]
        rows = {snapshot.snapshot_id: self._picked_rows(snapshot) for snapshot in line[:start]}
        chosen = []
        for snapshot in reversed(line[:start]):
            picked = rows[snapshot.snapshot_id]
            if picked and after.isdisjoint(picked) and noise.random() < 0.7:
                chosen.append(snapshot)
                after |= picked
        if not chosen:
            return
        self._set_main(line[start].snapshot_id)
        for snapshot in chosen:
            self.scene.other.cherry_pick(snapshot)
            model.put(rows[snapshot.snapshot_id], RecordState.LIVE)
        model.is_set_back = True  # the history stays without the commits, even if all rows are there
        self.notes.append(f"    {len(chosen)} snapshots picked of {start}, {len(model.missing)} rows are missing")

    def _picked_rows(self, snapshot: Snapshot) -> frozenset[Place]:
        files = self.scene.other.added_files(snapshot)
        places = frozenset(place for file in files for place in places_of(file.rows))
        spec_id = self.scene.table().spec().spec_id
        is_allowed = places <= {*self.model.live, *self.model.missing}
        is_append = snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND
        is_plain = all(file.data.spec_id == spec_id for file in files)
        return places if is_append and is_allowed and is_plain else frozenset()

    def branch(self, act: Act, noise: Random) -> None:
        self._branch(noise, is_forwarded=False)

    def fast_forward(self, act: Act, noise: Random) -> None:
        self._branch(noise, is_forwarded=True)

    def _branch(self, noise: Random, *, is_forwarded: bool) -> None:
        live, table = self.model.live, self.scene.table()
        snapshot = table.current_snapshot()
        if not live or snapshot is None:
            return
        with table.manage_snapshots() as manage:
            manage.create_branch(snapshot.snapshot_id, "audit")
        places = live[: noise.randrange(1, _MOST_DELETED)]
        self.scene.other.delete_copied(places, branch="audit")
        judge(self.scene, self.model)
        if is_forwarded:
            self.scene.set_main(self.scene.table().snapshot_by_name("audit").snapshot_id)
            self.model.deleted(places)
        with self.scene.table().manage_snapshots() as manage:
            manage.remove_branch("audit")

    def add_column(self, act: Act, noise: Random) -> None:
        from pyiceberg.types import StringType

        with self.scene.table().update_schema() as update:
            update.add_column(f"note_{act.noise}", StringType())

    def rename(self, act: Act, noise: Random) -> None:
        if not self.scene.plan.is_decoded:
            return
        table = self.scene.table()
        fields = [field.name for field in table.schema().find_type("val").fields if not field.name.startswith("__")]
        name = noise.choice([field for field in fields if field in {"id", "price", "paid", "blob", "big"}] or fields)
        self.scene.other.rename_column(("val", name), f"{name}_renamed")

    def add_rows(self, act: Act, noise: Random) -> None:
        """Add rows outside every log: `verify` reports them, and no command takes them for archived."""
        partition = noise.choice(self.model.partitions)
        places = [(partition, self.model.end(partition) + 1_000 + number) for number in range(3)]
        self.scene.other.add_rows(places)
        self.model.alien = frozenset(places)
        judge_rows(self.scene.other.files(), self.model)
        judge_verdict(said_by(self.scene.commands.verify), self.model)
        self.scene.other.delete_copied(places)
        self.model.alien = frozenset()

    def upgrade(self, act: Act, noise: Random) -> None:
        self.scene.upgrade()
        for name in ("archive", "compact"):
            said = self.scene.run(methodcaller(name), self.scene.commands)
            self.notes.append(f"    {name}: {said}")
            if said.succeeded and name == "archive":
                raise Violation("archive writes to a table of format 3")
            if not said.succeeded and "FormatUpgraded" not in str(said):
                raise Violation(f"{name} doesn't say that the table was upgraded: {said}")
        judge_rows(self.scene.other.files(), self.model)
        self.is_over = True


def _by_kafka_partition(rows: pa.Table) -> Iterable[pa.Table]:
    partitions = [partition for partition, _ in places_of(rows)]
    for number in sorted(set(partitions)):
        yield rows.filter(pa.array([partition == number for partition in partitions]))


def _chunks(rows: pa.Table, size: int) -> Iterable[pa.Table]:
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


_ACTS: Final[dict[Verb, Callable[[HistoryPlayer, Act, Random], None]]] = {
    verb: getattr(HistoryPlayer, verb.name.lower()) for verb in Verb
}
