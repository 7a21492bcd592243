"""kio's classes of requests and responses. kio imports one each time it is asked for; here each is looked up once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.static.protocol import RequestPayload, ResponsePayload

from archiver.serve.kafka.request_reader import reader_of


@cache
def request_kind(api_key: int, version: int) -> type[RequestPayload]:
    """The class of requests of an API and version that kio knows."""
    return load_request_schema(api_key, version)


@cache
def response_kind(api_key: int, version: int) -> type[ResponsePayload]:
    """The class of responses of an API and version that kio knows."""
    return load_response_schema(api_key, version)


def load_ahead(apis: Iterable[tuple[int, int, int]]) -> None:
    """Load the classes of APIs, each given by its key, first and last version: then no first request waits for it."""
    for key, least, most in apis:
        for version in range(least, most + 1):
            reader_of(request_kind(key, version))
            entity_writer(response_kind(key, version))
