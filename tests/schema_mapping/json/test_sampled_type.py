"""Types of sampled values; `archiver.schemas.json.inference` has more tests."""

from __future__ import annotations

import json

from schema_mapping.json.sampled_type import MOST_NAMES, SampledType, parsed


class Unordered(SampledType):
    def ordered_names(self) -> list[str]:
        raise AssertionError("ordering takes time in the square of the number of names")


def added(*values: object) -> SampledType:
    root = Unordered()
    for value in values:
        root.add(parsed(json.dumps(value).encode()))
    return root


def test_names_of_a_wide_object_are_not_ordered() -> None:
    mixed = added({f"n{number}": number if number % 2 else str(number) for number in range(MOST_NAMES + 1)})
    assert mixed.is_too_wide()
    assert mixed.schema() == {}
    assert [path for path, _ in mixed.places()] == [""]
    empty = added({f"n{number}": None for number in range(MOST_NAMES + 1)})
    assert empty.is_too_wide()
    assert empty.schema() is None


def test_names_of_a_map_are_not_ordered() -> None:
    alike = added({f"n{number}": number for number in range(MOST_NAMES + 1)})
    assert alike.schema() == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_names_have_the_order_of_the_values() -> None:
    root = SampledType()
    for value in (b'{"a": 1, "c": 2}', b'{"a": 1, "b": 1, "c": 2}', b'{"z": 1, "a": 1}'):
        root.add(parsed(value))
    assert root.ordered_names() == ["z", "a", "b", "c"]
