"""First offsets of a table that journal or registry prove: other engines can change its property."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.sources import VerifySources
from catalog.iceberg import properties as keys


def proven_first_offsets(sources: VerifySources, journaled: Mapping[int, int]) -> dict[int, int]:
    registered = sources.registry.proven_offsets if sources.registry else {}
    highest = _highest(journaled, registered)
    return {
        partition: min(offset, highest[partition])
        for partition, offset in sources.table.first_offsets.items()
        if partition in highest
    }


def unnamed_first_offsets(
    sources: VerifySources, journaled: Mapping[int, int], starts: Mapping[int, int]
) -> Iterator[Fault]:
    """Yield a fault for each first offset that is in the table alone.

    Without a registry, only if the journal is as old as the partition and not late.
    """
    registry = sources.registry
    if registry is None and not (sources.has_journal and sources.has_newest_entry):
        return
    registered = {} if registry is None else _highest(registry.first_offsets, registry.proven_offsets)
    highest = _highest(journaled, registered)
    for partition, offset in sorted(sources.table.first_offsets.items()):
        named = highest.get(partition, 0)
        if offset > named and (registry is not None or partition in starts):
            yield Fault(
                kind=FaultKind.HISTORY,
                message=f"the table's property {keys.FIRST_OFFSETS} says that the partition begins at offset {offset},"
                f" and journal and registry know of no `archiver expire` beyond {named}: other engines changed it, or"
                " journal and registry were set back. Rows that are missing below it count as missing. Restore the"
                " property's value, or a newer backup of journal or registry",
                partition=partition,
                start_offset=named,
                end_offset=offset,
            )


def _highest(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    return {
        partition: max(first.get(partition, 0), second.get(partition, 0)) for partition in first.keys() | second.keys()
    }
