"""A disk in memory that loses contents, names, renames and removals before a sync."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field


class PowerCut(BaseException):
    """Not an Exception, so that no code handles it."""


@dataclass(eq=False, slots=True)
class Inode:
    content: bytearray
    durable: bytes = b""
    written: int = 0
    is_closed: bool = False
    has_failed: bool = False


@dataclass
class LossyDisk:
    """`step` is called before operations, and may raise PowerCut or OSError."""

    step: Callable[[str], None] = lambda _: None
    room: int = 1 << 40
    names_now: dict[str, Inode] = field(default_factory=dict)
    names_durable: dict[str, Inode] = field(default_factory=dict)
    pending: list[Callable[[dict[str, Inode]], None]] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.names_now))

    def read(self, name: str, size: int | None = None) -> bytes:
        content = self.names_now[name].content
        return bytes(content if size is None else content[:size])

    def size(self, name: str) -> int:
        return len(self.names_now[name].content)

    def create(self, name: str, *, reserve: int) -> LossyFile:
        self.step("create")
        assert name not in self.names_now
        if sum(len(inode.content) for inode in self.names_now.values()) + reserve > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        inode = Inode(bytearray(reserve))
        self._change(lambda names: names.__setitem__(name, inode))
        return LossyFile(self, inode)

    def rename(self, old: str, new: str) -> None:
        self.step("rename")
        inode = self.names_now[old]

        def move(names: dict[str, Inode]) -> None:
            names.pop(old, None)
            names[new] = inode

        self._change(move)

    def remove(self, name: str) -> None:
        self.step("remove")
        if name in self.names_now:
            self._change(lambda names: names.pop(name, None))

    def sync_folder(self) -> None:
        self.step("sync_folder")
        self.names_durable = dict(self.names_now)
        self.pending = []

    def cut_power(self, choose: Callable[[int], int]) -> None:
        """Keep durable data, and a part of the rest: `choose(n)` is in 0..n-1."""
        kept = dict(self.names_durable)
        for change in self.pending[: choose(len(self.pending) + 1)]:
            change(kept)
        for inode in {id(inode): inode for inode in kept.values()}.values():
            self._tear(inode, choose)
        self.names_now, self.names_durable, self.pending = dict(kept), dict(kept), []

    def _change(self, change: Callable[[dict[str, Inode]], None]) -> None:
        change(self.names_now)
        self.pending.append(change)

    @staticmethod
    def _tear(inode: Inode, choose: Callable[[int], int]) -> None:
        size = len(inode.content)
        torn = bytearray(inode.durable.ljust(size, b"\0"))
        unsynced = inode.written - len(inode.durable)
        match choose(4):
            case 1:  # a beginning
                end = len(inode.durable) + choose(unsynced + 1)
                torn[len(inode.durable) : end] = inode.content[len(inode.durable) : end]
            case 2:  # an end, with a hole before it
                start = len(inode.durable) + choose(unsynced + 1)
                torn[start : inode.written] = inode.content[start : inode.written]
            case 3:
                torn = bytearray(inode.content)
            case _:
                pass
        inode.content, inode.durable = torn, bytes(torn[: inode.written])


class LossyFile:
    def __init__(self, disk: LossyDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode

    def write(self, data: bytes) -> None:
        assert not self._inode.is_closed
        assert not self._inode.has_failed, "written again after a failed sync"
        self._disk.step("write")
        inode = self._inode
        end = inode.written + len(data)
        inode.content[inode.written : end] = data
        inode.written = end

    def sync(self) -> None:
        assert not self._inode.has_failed, "synced again after a failed sync"
        try:
            self._disk.step("sync")
        except OSError:
            self._inode.has_failed = True
            raise
        self._inode.durable = bytes(self._inode.content[: self._inode.written])

    def close(self) -> None:
        self._inode.is_closed = True
