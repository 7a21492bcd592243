"""What a file says about itself: the key-value metadata of its Parquet footer.

The mapping's JSON holds the writer's descriptors, so a replay of the file needs neither registry nor journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from archiver.errors import BadSegment
from archiver.storage.segment import SegmentLayout, SegmentMetadata, SegmentOrigin
from catalog.digests import DIGEST_ALGORITHM
from catalog.model import FORMAT_VERSION

FORMAT: Final = "archiver.format-version"
CLUSTER_ID: Final = "archiver.cluster-id"
TOPIC: Final = "archiver.topic"
TOPIC_ID: Final = "archiver.topic-id"
PARTITION: Final = "archiver.partition"
START_OFFSET: Final = "archiver.start-offset"
END_OFFSET: Final = "archiver.end-offset"
SCHEMA_VERSION: Final = "archiver.schema-version"
MAPPING: Final = "archiver.mapping"
DIGEST_KEY: Final = "archiver.digest"
DIGEST_ALGORITHM_KEY: Final = "archiver.digest-algorithm"


def footer_of(layout: SegmentLayout, origin: SegmentOrigin, digest: str | None) -> dict[str, str]:
    """Key-value metadata for a file of this layout and origin, and with this digest of its records if it is known."""
    digests = {} if digest is None else {DIGEST_ALGORITHM_KEY: DIGEST_ALGORITHM, DIGEST_KEY: digest}
    return digests | {
        FORMAT: str(FORMAT_VERSION),
        CLUSTER_ID: origin.cluster_id,
        TOPIC: origin.topic,
        TOPIC_ID: origin.topic_id,
        PARTITION: str(origin.partition),
        START_OFFSET: str(origin.start_offset),
        END_OFFSET: str(origin.end_offset),
        SCHEMA_VERSION: str(layout.schema_version),
        MAPPING: layout.mapping,
    }


def read_footer(pairs: Mapping[bytes, bytes] | None, *, rows: int, path: str) -> SegmentMetadata:
    """Read key-value metadata back; BadSegment where it is newer than this software or contradicts itself."""
    found = {key.decode("utf-8", "replace"): value for key, value in (pairs or {}).items()}
    if FORMAT not in found:
        return SegmentMetadata(rows=rows, origin=None, mapping=None, schema_version=None, format_version=None)
    try:
        version = int(found[FORMAT])
        if version > FORMAT_VERSION:
            raise BadSegment(
                "the file was written by newer software: upgrade the archiver to read it",
                file=path,
                format_version=version,
                understood=FORMAT_VERSION,
            )
        return SegmentMetadata(
            rows=rows,
            origin=SegmentOrigin(
                cluster_id=found[CLUSTER_ID].decode(),
                topic=found[TOPIC].decode(),
                topic_id=found[TOPIC_ID].decode(),
                partition=int(found[PARTITION]),
                start_offset=int(found[START_OFFSET]),
                end_offset=int(found[END_OFFSET]),
            ),
            mapping=found[MAPPING].decode(),
            schema_version=int(found[SCHEMA_VERSION]),
            format_version=version,
            digest=_known_digest(found),
        )
    except (KeyError, ValueError) as error:
        raise BadSegment(
            "the file's footer is incomplete or damaged: restore the file from a backup, or archive its range again",
            file=path,
            cause=repr(error),
        ) from error


def _known_digest(found: Mapping[str, bytes]) -> str | None:
    if found.get(DIGEST_ALGORITHM_KEY) != DIGEST_ALGORITHM.encode():
        return None
    return f"{int(found[DIGEST_KEY], 16):032x}"
