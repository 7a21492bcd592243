"""A file's key-value metadata. Replays need no registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from archiver.errors import BadSegment
from archiver.storage.segment import SegmentLayout, SegmentMetadata, SegmentOrigin
from catalog.digests import DIGEST_ALGORITHM
from catalog.model import FORMAT_VERSION
from catalog.partitioning import UNPLACED, PartitionTuple, values_from_json, values_to_json
from catalog.recognition import Recognition

FORMAT: Final = "archiver.format-version"
CLUSTER_ID: Final = "archiver.cluster-id"
TOPIC: Final = "archiver.topic"
TOPIC_ID: Final = "archiver.topic-id"
PARTITION: Final = "archiver.partition"
START_OFFSET: Final = "archiver.start-offset"
END_OFFSET: Final = "archiver.end-offset"
RANGE_FILES: Final = "archiver.range-files"
RANGE_ID: Final = "archiver.range-id"
SCHEMA_VERSION: Final = "archiver.schema-version"
MAPPING: Final = "archiver.mapping"
OTHER_MAPPINGS: Final = "archiver.other-mappings"
DIGEST_KEY: Final = "archiver.digest"
DIGEST_ALGORITHM_KEY: Final = "archiver.digest-algorithm"
RECOGNITION: Final = "archiver.recognition"
LARGEST_RECORD: Final = "archiver.largest-record"
PARTITIONED_BY: Final = "archiver.partitioned-by"
PARTITION_VALUES: Final = "archiver.partition-values"


def footer_of(
    layout: SegmentLayout,
    origin: SegmentOrigin | None,
    digest: str | None,
    recognition: Recognition | None = None,
    place: PartitionTuple = UNPLACED,
    *,
    largest_record: int | None = None,
) -> dict[str, str]:
    pairs = {SCHEMA_VERSION: str(layout.schema_version), MAPPING: layout.mapping}
    if layout.other_mappings:
        mappings = {str(version): json.loads(text) for version, text in sorted(layout.other_mappings.items())}
        pairs[OTHER_MAPPINGS] = json.dumps(mappings, separators=(",", ":"))
    if digest is not None:
        pairs |= {DIGEST_ALGORITHM_KEY: DIGEST_ALGORITHM, DIGEST_KEY: digest}
    if largest_record is not None:
        pairs[LARGEST_RECORD] = str(largest_record)
    if recognition is not None:
        pairs[RECOGNITION] = json.dumps(recognition.to_json(), separators=(",", ":"))
    if place.by is not None and place.values is not None:
        values = json.dumps(values_to_json(place.values), separators=(",", ":"))
        pairs |= {PARTITIONED_BY: place.by, PARTITION_VALUES: values}
    if origin is None:
        return pairs
    if origin.files > 1:
        pairs |= {RANGE_FILES: str(origin.files), RANGE_ID: origin.range_id}
    return pairs | {
        FORMAT: str(FORMAT_VERSION),
        CLUSTER_ID: origin.cluster_id,
        TOPIC: origin.topic,
        TOPIC_ID: origin.topic_id,
        PARTITION: str(origin.partition),
        START_OFFSET: str(origin.start_offset),
        END_OFFSET: str(origin.end_offset),
    }


def read_footer(pairs: Mapping[bytes, bytes] | None, *, rows: int, path: str) -> SegmentMetadata:
    """Raises BadSegment if newer software wrote the metadata or it contradicts itself."""
    entries = {key.decode("utf-8", "replace"): value for key, value in (pairs or {}).items()}
    try:
        version = int(entries[FORMAT]) if FORMAT in entries else None
        if version is not None and version > FORMAT_VERSION:
            raise BadSegment(
                "the file was written by newer software: upgrade the archiver to read it",
                file=path,
                format_version=version,
                understood=FORMAT_VERSION,
            )
        return SegmentMetadata(
            rows=rows,
            origin=None if version is None else _origin(entries),
            mapping=entries[MAPPING].decode() if version is not None or MAPPING in entries else None,
            schema_version=int(entries[SCHEMA_VERSION]) if version is not None or SCHEMA_VERSION in entries else None,
            format_version=version,
            digest=_known_digest(entries),
            other_mappings=_other_mappings(entries),
            recognition=Recognition.from_json(json.loads(entries[RECOGNITION])) if RECOGNITION in entries else None,
            place=_place(entries),
            largest_record=int(entries[LARGEST_RECORD]) if LARGEST_RECORD in entries else None,
        )
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise BadSegment(
            "the file's footer is incomplete or damaged: restore the file from a backup, or archive its range again",
            file=path,
            cause=repr(error),
        ) from error


def _origin(found: Mapping[str, bytes]) -> SegmentOrigin:
    return SegmentOrigin(
        cluster_id=found[CLUSTER_ID].decode(),
        topic=found[TOPIC].decode(),
        topic_id=found[TOPIC_ID].decode(),
        partition=int(found[PARTITION]),
        start_offset=int(found[START_OFFSET]),
        end_offset=int(found[END_OFFSET]),
        files=int(found.get(RANGE_FILES, b"1")),
        range_id=found.get(RANGE_ID, b"").decode(),
    )


def _place(found: Mapping[str, bytes]) -> PartitionTuple | None:
    if PARTITIONED_BY not in found:
        return None
    return PartitionTuple(found[PARTITIONED_BY].decode(), values_from_json(json.loads(found[PARTITION_VALUES])))


def _other_mappings(found: Mapping[str, bytes]) -> dict[int, str]:
    mappings = json.loads(found.get(OTHER_MAPPINGS, b"{}"))
    return {int(version): json.dumps(mapping, separators=(",", ":")) for version, mapping in mappings.items()}


def _known_digest(found: Mapping[str, bytes]) -> str | None:
    if found.get(DIGEST_ALGORITHM_KEY) != DIGEST_ALGORITHM.encode():
        return None
    return f"{int(found[DIGEST_KEY], 16):032x}"
