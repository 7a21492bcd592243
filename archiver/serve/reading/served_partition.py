"""The state of a served partition."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ServedPartition:
    """Ends and epochs never go back."""

    end: int = 0
    """The offset after the last archived one, or the begin of an empty partition."""
    leader_epoch: int = -1
    """The leader epoch of the last archived records; -1 if it isn't known."""
    begin: int | None = None
    """The begin of its archive, which may precede its first record; None if the registry has none."""
    is_begin_known: bool = False
    ahead: int | None = None
    """The last offset beyond the end that a client requested."""
    epoch_ends: dict[int, int] = field(default_factory=dict)
    """The ends of leader epochs that were looked up."""
    _start: int = 0
    _start_snapshot: int | None = None
    _has_start: bool = False

    def start(self, snapshot_id: int | None) -> int | None:
        return self._start if self._has_start and self._start_snapshot == snapshot_id else None

    def keep_start(self, start: int, snapshot_id: int | None) -> int:
        self._start, self._start_snapshot, self._has_start = start, snapshot_id, True
        return start

    def learn_begin(self, begin: int | None) -> None:
        self.begin, self.is_begin_known, self._has_start = begin, True, False
        self.end = max(self.end, begin or 0)

    def grow(self, end: int, leader_epoch: int) -> None:
        self.end, self.leader_epoch = max(self.end, end), max(self.leader_epoch, leader_epoch)
