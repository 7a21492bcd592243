"""The JSON beside each batch: `{"client", "batch_id", "incarnation"?, "partition"?, "start_ts"?, "end_ts"?}`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from archiver.errors import BadBatch

_MOST_BYTES: Final = 4 << 10
_MOST_NAME: Final = 256
_MOST_ID: Final = 1 << 62
_INTEGERS: Final = ("batch_id", "incarnation", "partition", "start_ts", "end_ts")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMetadata:
    """Times are ms since 1970, both inclusive."""

    client: str
    batch_id: int
    incarnation: int = 0
    partition: int | None = None
    start_ts: int | None = None
    end_ts: int | None = None

    @classmethod
    def parse(cls, data: memoryview, *, partitions: int) -> BatchMetadata:
        """Raises BadBatch."""
        if not data:
            raise BadBatch('each batch needs `app_metadata`, such as {"client": "sensor-1", "batch_id": 0}')
        value = _object(bytes(data))
        unknown = sorted(set(value) - {"client", *_INTEGERS})
        if unknown:
            raise BadBatch(f"`app_metadata` has unknown keys: {', '.join(map(repr, unknown))[:200]}")
        for key in _INTEGERS:
            number = value.get(key)
            if number is not None and (
                not isinstance(number, int) or isinstance(number, bool) or abs(number) > _MOST_ID
            ):
                raise BadBatch(f"`{key}` of `app_metadata` must be an integer")
        client = client_name(value.get("client"))
        if value.get("batch_id") is None:
            raise BadBatch(
                "`app_metadata` needs `batch_id`: 0 for the client's first batch, then 1, 2, …", client=client
            )
        metadata = cls(client=client, **{key: value[key] for key in _INTEGERS if value.get(key) is not None})
        if metadata.batch_id < 0 or metadata.incarnation < 0:
            raise BadBatch("`batch_id` and `incarnation` must not be negative", client=client)
        if metadata.partition is not None and not 0 <= metadata.partition < partitions:
            raise BadBatch(f"the topic has the partitions 0 to {partitions - 1}", partition=metadata.partition)
        return metadata


def client_name(value: object) -> str:
    """Raises BadBatch."""
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_NAME or not value.isprintable():
        raise BadBatch(f"`client` must be a text of 1 to {_MOST_NAME} printable characters")
    return value


def _object(data: bytes) -> dict[str, Any]:
    if len(data) > _MOST_BYTES:
        raise BadBatch(f"`app_metadata` has {len(data):,} bytes, and may have {_MOST_BYTES:,}")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise BadBatch("`app_metadata` is not JSON") from None
    if not isinstance(value, dict):
        raise BadBatch("`app_metadata` must be a JSON object")
    return value
