"""The JSON beside a batch."""

from __future__ import annotations

import pytest

from archiver.errors import BadBatch
from archiver.flight.batch_metadata import BatchMetadata


def parsed(text: str) -> BatchMetadata:
    return BatchMetadata.parse(memoryview(text.encode()), partitions=4)


def test_keys_have_defaults() -> None:
    assert parsed('{"client": "a", "batch_id": 3}') == BatchMetadata(client="a", batch_id=3)
    text = '{"client": "a", "batch_id": 3, "incarnation": 1, "partition": 2, "start_ts": 5, "end_ts": null}'
    assert parsed(text) == BatchMetadata(client="a", batch_id=3, incarnation=1, partition=2, start_ts=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "each batch needs `app_metadata`, such as"),
        ("{", "`app_metadata` is not JSON"),
        ("[" * 4000, "`app_metadata` is not JSON"),
        ("[]", "`app_metadata` must be a JSON object"),
        ('{"client": "a", "batch_id": 0, "x": 1}', "`app_metadata` has unknown keys: 'x'"),
        ('{"batch_id": 0}', "`client` must be a text of 1 to 256 printable characters"),
        ('{"client": "a\\nb", "batch_id": 0}', "`client` must be a text of 1 to 256 printable characters"),
        ('{"client": "a"}', "`app_metadata` needs `batch_id`: 0 for the client's first batch"),
        ('{"client": "a", "batch_id": 0.5}', "`batch_id` of `app_metadata` must be an integer"),
        ('{"client": "a", "batch_id": true}', "`batch_id` of `app_metadata` must be an integer"),
        ('{"client": "a", "batch_id": 1e99}', "`batch_id` of `app_metadata` must be an integer"),
        ('{"client": "a", "batch_id": 9223372036854775808}', "`batch_id` of `app_metadata` must be an integer"),
        ('{"client": "a", "batch_id": -1}', "`batch_id` and `incarnation` must not be negative"),
        ('{"client": "a", "batch_id": 0, "partition": 4}', "the topic has the partitions 0 to 3"),
        ('{"client": "' + "a" * 5000 + '"}', "`app_metadata` has 5,014 bytes, and may have 4,096"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(BadBatch) as caught:
        parsed(text)
    assert message in str(caught.value)
