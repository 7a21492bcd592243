"""Hypothesis strategies for Protobuf schemas and bytes."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.support.schemas.random_choices import DrawnChoices, SeededChoices
from tests.support.schemas.random_payloads import random_payload
from tests.support.schemas.random_schemas import random_schema


@st.composite
def schemas(draw: DrawFn) -> Descriptor:
    return random_schema(DrawnChoices(draw))


@st.composite
def payloads(draw: DrawFn, descriptor: Descriptor) -> bytes:
    return random_payload(DrawnChoices(draw), descriptor)


@st.composite
def many_payloads(draw: DrawFn, descriptor: Descriptor, *, count: int = 50) -> list[bytes | None]:
    """From one seed: fast, but doesn't shrink."""
    choices = SeededChoices(draw(st.integers(0, 2**32 - 1)))
    return [None if choices.integer(0, 19) == 0 else random_payload(choices, descriptor) for _ in range(count)]
