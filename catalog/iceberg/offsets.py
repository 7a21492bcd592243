"""The property `archiver.offsets`, compact JSON: `{"<partition>":[<next offset>,<leader epoch>],…}` (docs/concepts.md).

It survives snapshot expiry and other engines' commits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from catalog.errors import TableError
from catalog.model import PartitionOffset, TranslatedRange


def encode_offsets(offsets: Mapping[int, PartitionOffset]) -> str:
    plain = {str(partition): [offset.next_offset, offset.leader_epoch] for partition, offset in sorted(offsets.items())}
    return json.dumps(plain, separators=(",", ":"))


def decode_offsets(text: str) -> dict[int, PartitionOffset]:
    """Raises TableError for foreign text."""
    try:
        return {
            int(partition): PartitionOffset(next_offset=int(next_offset), leader_epoch=int(leader_epoch))
            for partition, (next_offset, leader_epoch) in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        msg = (
            "the table property archiver.offsets cannot be read: somebody changed it. Set it again to what an earlier"
            " metadata file of the table has; don't set the table itself back, which would take records out of it"
        )
        raise TableError(msg, found=text[:80]) from error


def encode_first_offsets(first: Mapping[int, int]) -> str:
    """`archiver.first-offsets`: `{"<partition>":<offset>,…}`."""
    return json.dumps({str(partition): offset for partition, offset in sorted(first.items())}, separators=(",", ":"))


def decode_first_offsets(text: str) -> dict[int, int]:
    """Raises TableError for foreign text."""
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        msg = (
            "the table property archiver.first-offsets cannot be read: somebody changed it. Set it again to what an"
            " earlier metadata file of the table has"
        )
        raise TableError(msg, found=text[:80]) from error


def encode_ranges(ranges: Sequence[TranslatedRange]) -> str:
    """`archiver.ranges` of a summary: `{"<partition>":[<start>,<end>],…}` for advanced partitions."""
    return json.dumps({str(partition): span for partition, span in spans(ranges).items()}, separators=(",", ":"))


def decode_ranges(text: str) -> dict[int, tuple[int, int]]:
    return {int(partition): (start, end) for partition, (start, end) in json.loads(text).items()}


def encode_spans(ranges: Sequence[TranslatedRange]) -> str:
    """`archiver.lost` of a summary: `{"<partition>":[<start>,<end>,<start>,<end>…],…}`, gaps allowed."""
    edges: dict[str, list[int]] = {}
    for range_ in in_order(ranges):
        edges.setdefault(str(range_.partition), []).extend((range_.start_offset, range_.end_offset))
    return json.dumps(edges, separators=(",", ":"))


def decode_spans(text: str) -> tuple[tuple[int, int, int], ...]:
    """Return (partition, start, end)."""
    return tuple(
        (int(partition), start, end)
        for partition, edges in json.loads(text).items()
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    )


def spans(ranges: Sequence[TranslatedRange]) -> dict[int, tuple[int, int]]:
    """Raises ValueError for gaps or overlaps."""
    covered: dict[int, tuple[int, int]] = {}
    for partition, group in groupby(in_order(ranges), key=lambda range_: range_.partition):
        chain = tuple(group)
        for before, after in pairwise(chain):
            if before.end_offset != after.start_offset:
                raise ValueError(f"ranges of partition {partition} are no chain: {before.span} then {after.span}")
        covered[partition] = (chain[0].start_offset, chain[-1].end_offset)
    return covered


def in_order(ranges: Sequence[TranslatedRange]) -> tuple[TranslatedRange, ...]:
    return tuple(sorted(ranges, key=lambda range_: (range_.partition, range_.start_offset)))


def advance(offsets: Mapping[int, PartitionOffset], ranges: Sequence[TranslatedRange]) -> dict[int, PartitionOffset]:
    after = dict(offsets)
    for range_ in in_order(ranges):
        before = after.get(range_.partition)
        epoch = max(range_.leader_epoch, before.leader_epoch if before else -1)
        after[range_.partition] = PartitionOffset(next_offset=range_.end_offset, leader_epoch=epoch)
    return after
