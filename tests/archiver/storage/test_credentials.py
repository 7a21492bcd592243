"""Credentials are renewed once for all threads."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from pyiceberg.io import FileIO

from archiver.errors import CredentialsExpired, StorageDenied
from archiver.storage.credentials import latest
from archiver.storage.objects import ObjectStore
from catalog.errors import CatalogDenied, CatalogUnreachable
from catalog.iceberg.vended import CredentialSource
from tests.support.servers.stack import unique

TOKEN: Final = "s3.session-token"
EXPIRES: Final = "s3.session-token-expires-at-ms"


@dataclass(frozen=True)
class Catalog:
    answers: tuple[dict[str, str] | Exception, ...]
    asked: list[float] = field(default_factory=list, compare=False, hash=False)
    name: str = field(default_factory=lambda: unique("catalog"))

    def __hash__(self) -> int:
        return hash(self.name)

    def load(self) -> dict[str, str]:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(time.monotonic())
        if isinstance(answer, Exception):
            raise answer
        return answer


def token(*, life: float | None = None) -> dict[str, str]:
    expiry = {} if life is None else {EXPIRES: str(int((time.time() + life) * 1_000))}
    return {TOKEN: unique("token"), **expiry}


def store(first: dict[str, str], *answers: dict[str, str] | Exception) -> tuple[ObjectStore, Catalog]:
    catalog = Catalog(answers)
    return ObjectStore(tuple(sorted(first.items())), attempts=2, source=catalog), catalog


def denying(*tokens: dict[str, str]) -> Callable[[FileIO], str]:
    def read(io: FileIO) -> str:
        if io.properties[TOKEN] in {token[TOKEN] for token in tokens}:
            raise PermissionError("ExpiredToken")
        return str(io.properties[TOKEN])

    return read


def test_a_denial_is_tried_again_with_new_ones(tmp_path: Path) -> None:
    old, new = token(), token()
    objects, catalog = store(old, new)
    for _ in range(3):
        assert objects.reading(tmp_path.as_uri(), denying(old)) == new[TOKEN]
    assert len(catalog.asked) == 1


def test_new_ones_run_out_too(tmp_path: Path) -> None:
    tokens = [token() for _ in range(5)]
    objects, catalog = store(*tokens)
    for number, value in enumerate(tokens[1:], start=1):
        assert objects.reading(tmp_path.as_uri(), denying(*tokens[:number])) == value[TOKEN]
    assert len(catalog.asked) == 4


def test_credentials_renew_before_the_catalogs_expiry(tmp_path: Path) -> None:
    old, new = token(life=5), token(life=900)
    objects, catalog = store(old, new)
    assert objects.reading(tmp_path.as_uri(), denying()) == new[TOKEN]
    left = objects.seconds_left
    assert left is not None
    assert 800 < left <= 900
    assert len(catalog.asked) == 1


def test_no_newer_credentials_is_no_error_while_valid(tmp_path: Path) -> None:
    for answer in (CatalogUnreachable("away"), None):
        old = token(life=5)
        objects, catalog = store(old, answer or old)
        for _ in range(10):
            assert objects.reading(tmp_path.as_uri(), denying()) == old[TOKEN]
        assert 1 <= len(catalog.asked) <= 3


def test_catalog_away_at_expiry_is_retried(tmp_path: Path) -> None:
    old = token()
    objects, _ = store(old, CatalogUnreachable("away"))
    with pytest.raises(CredentialsExpired, match=r"gives no others now.*away") as failure:
        objects.reading(tmp_path.as_uri(), denying(old))
    assert failure.value.retryable
    assert isinstance(failure.value, StorageDenied)


@pytest.mark.parametrize("answer", ["same", "refused"])
def test_a_denial_that_no_others_cure_is_one(tmp_path: Path, answer: str) -> None:
    old = token()
    objects, _ = store(old, old if answer == "same" else CatalogDenied("no"))
    with pytest.raises(StorageDenied) as failure:
        objects.reading(tmp_path.as_uri(), denying(old))
    assert not failure.value.retryable


def test_a_right_that_lacks_isnt_asked_for_without_end(tmp_path: Path) -> None:
    tokens = [token() for _ in range(10)]
    objects, catalog = store(*tokens)
    with pytest.raises(StorageDenied) as failure:
        objects.reading(tmp_path.as_uri(), denying(*tokens))
    assert not failure.value.retryable
    assert len(catalog.asked) == 1


def test_many_threads_ask_once(tmp_path: Path) -> None:
    old, new = token(), token()
    objects, catalog = store(old, new)
    together = threading.Barrier(8)

    def read(_: int) -> str:
        together.wait(10)
        return objects.reading(tmp_path.as_uri(), denying(old))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(8))) == {new[TOKEN]}
    assert len(catalog.asked) == 1


def test_credentials_that_take_turns_lead_in_no_circle(tmp_path: Path) -> None:
    first, second = token(), token()
    objects, _ = store(first, *(second, first) * 3)
    for _ in range(3):
        assert objects.reading(tmp_path.as_uri(), denying(first)) == second[TOKEN]
        assert objects.reading(tmp_path.as_uri(), denying(second)) == first[TOKEN]
    assert latest(objects.properties) in {tuple(sorted(item.items())) for item in (first, second)}


def test_a_store_of_its_own_credentials_asks_nobody(tmp_path: Path) -> None:
    old = token()
    objects = ObjectStore.of(old, attempts=1)
    with pytest.raises(StorageDenied):
        objects.reading(tmp_path.as_uri(), denying(old))
    assert objects.seconds_left is None


def test_the_source_travels_and_shows_no_secret() -> None:
    source = CredentialSource(
        "kafka.orders",
        (("token", "hush"), ("oauth2-server-uri", "http://127.0.0.1:1/t"), ("uri", "http://127.0.0.1:1")),
    )
    assert pickle.loads(pickle.dumps(ObjectStore(source=source))) == ObjectStore(source=source)
    assert "hush" not in repr(ObjectStore(source=source))
    with pytest.raises(CatalogUnreachable):
        source.load()
