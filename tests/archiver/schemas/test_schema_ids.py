"""The meaning of schema ids in tasks, while the schema registry answers and while it is down."""

from __future__ import annotations

import pickle

import pytest

from archiver.config.model import SchemaRegistrySection
from archiver.errors import SchemaRegistryUnavailable
from archiver.schemas.schema_ids import SchemaRegistryIds
from archiver.schemas.schema_registry import SchemaRegistrySettings, client_of
from archiver.schemas.subjects import Subjects
from catalog.registry.last_known import KnownSchemas
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.shop_schemas import order


def test_ids_travel(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = pickle.loads(pickle.dumps(SchemaRegistryIds(settings=SchemaRegistrySettings(urls=(registry.url,)))))
    assert ids.messages(number, (1,)) == {"shop.Other"}
    assert ids.messages(number, (9,)) == frozenset()
    assert ids.messages(1, (0,)) is None


def test_ids_learn(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = SchemaRegistryIds(settings=SchemaRegistrySettings(urls=(registry.url,)))
    assert ids.messages(number, (1,)) == {"shop.Other"}
    news = ids.learned({number})
    assert news.keys() == {number}
    client_of.cache_clear()
    asked = len(registry.asked)
    informed = pickle.loads(pickle.dumps(ids.with_schemas(news)))
    assert informed.messages(number, (1,)) == {"shop.Other"}
    assert informed.learned({number}) == {}
    assert len(registry.asked) == asked


def test_what_was_said_stands_in_for_a_registry_that_is_down(registry: FakeRegistry) -> None:
    number = order(registry)
    section = SchemaRegistrySection(url=registry.url, timeout="100ms")
    first = Subjects(section)
    before = first.latest("orders-value")
    assert before.id == number
    assert first.news.subjects == {"orders-value": number}
    remembered = KnownSchemas(schemas=first.news.schemas, subjects=first.news.subjects)
    assert Subjects(section, remembered).news == KnownSchemas()
    client_of.cache_clear()
    registry.down = True
    again = Subjects(section, remembered)
    found = again.latest("orders-value")
    assert (found.id, found.source("shop.Order")) == (number, before.source("shop.Order"))
    assert isinstance(again.down, SchemaRegistryUnavailable)
    assert again.news == KnownSchemas()
    assert again.ids.messages(number, (0, 0)) == {"shop.Order.Line", "shop.Order.BeforeEntry"}
    with pytest.raises(SchemaRegistryUnavailable, match="nothing is known yet of the topic's schema"):
        again.latest("others-value")
    with pytest.raises(SchemaRegistryUnavailable):
        again.ids.messages(7, (0,))
