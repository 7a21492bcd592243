from __future__ import annotations

from uuid import UUID, uuid1, uuid3, uuid4, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.iceberg.attempt_names import ManifestName, is_ours, new_attempt_id

TABLE = UUID("0197a8a4-6f5e-7c00-8000-000000000001")


def test_ours_are_known_for_the_one_table_only() -> None:
    made = [new_attempt_id(TABLE) for _ in range(1000)]
    assert len(set(made)) == len(made)
    assert all(is_ours(uuid, TABLE) for uuid in made)
    assert not any(is_ours(uuid, uuid4()) for uuid in made)
    assert {(uuid.variant, uuid.version) for uuid in made} == {(uuid4().variant, 8)}


@given(st.uuids())
def test_no_other_uuid_is_taken_for_ours(other: UUID) -> None:
    assert not is_ours(other, TABLE)


def test_nor_are_those_that_libraries_make() -> None:
    foreign = [uuid1(), uuid3(TABLE, "a"), uuid4(), uuid5(TABLE, "a")]
    assert not any(is_ours(uuid, TABLE) for uuid in foreign)


@pytest.mark.parametrize(
    ("name", "is_list"),
    [
        ("7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e-m0.avro", False),
        ("7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e-m117.avro", False),
        ("snap-8744736658442914487-0-7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e.avro", True),
        ("00003-7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e.metadata.json", None),
        ("7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e-m0.avro.crc", None),
        ("optimized-m-7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e.avro", None),
        ("x7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e-m0.avro", None),
    ],
)
def test_names_of_manifests(name: str, is_list: bool | None) -> None:
    parsed = ManifestName.of(name)
    if is_list is None:
        assert parsed is None
    else:
        assert parsed == ManifestName(uuid=UUID("7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e"), is_list=is_list)
