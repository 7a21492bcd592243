from __future__ import annotations

from archiver.serve.kafka.apis import APIS, load_for_readers
from archiver.serve.kafka.kinds import request_kind, response_kind


def test_what_a_reader_asks_first_is_loaded_once_and_ahead() -> None:
    load_for_readers()
    before = request_kind.cache_info().misses, response_kind.cache_info().misses
    for key in (18, 3, 2, 1):
        for version in range(APIS[key].least, APIS[key].most + 1):
            assert request_kind(key, version).__api_key__ == response_kind(key, version).__api_key__ == key
            assert request_kind(key, version).__version__ == version
    assert (request_kind.cache_info().misses, response_kind.cache_info().misses) == before
