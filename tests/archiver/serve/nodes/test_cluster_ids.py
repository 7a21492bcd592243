"""Spellings of one catalog's address."""

from __future__ import annotations

import pytest

from archiver.serve.nodes import cluster_id_of

CATALOG = "http://rest.example:8181/catalog"
BEFORE = "cg4qqcQyXdgdf9Jny-zDdw"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CATALOG, f"{CATALOG}/"),
        (CATALOG, " http://rest.example:8181/catalog"),
        (CATALOG, "HTTP://Rest.Example:8181/catalog"),
        (CATALOG, "http://rest.example.:8181/catalog"),
        ("http://rest.example/", "http://rest.example:80"),
        ("https://rest.example", "https://REST.example:443/"),
        ("http://[::1]:8181", "http://[::1]:8181/"),
        ("postgresql://u:p@db/catalog", "postgresql://u:other@DB:5432/catalog"),
    ],
)
def test_spellings_of_one_catalog_address_are_one_cluster(one: str, other: str) -> None:
    assert cluster_id_of({"uri": one}) == cluster_id_of({"uri": other})
    assert cluster_id_of({"uri": one, "warehouse": "s3://lake/w"}) == cluster_id_of(
        {"uri": other, "warehouse": "s3://lake/w/"}
    )


@pytest.mark.parametrize(
    "other",
    [
        "https://rest.example:8181/catalog",
        "http://rest.example:8182/catalog",
        "http://rest.example:8181/Catalog",
        "http://rest2.example:8181/catalog",
        "http://rest.example:no-port/catalog",
        "sqlite:////catalog.db",
    ],
)
def test_other_catalogs_are_other_clusters(other: str) -> None:
    assert cluster_id_of({"uri": CATALOG}) != cluster_id_of({"uri": other})
    assert cluster_id_of({"uri": CATALOG}) != cluster_id_of({"uri": CATALOG, "warehouse": "other"})


def test_an_address_that_was_plain_keeps_its_id() -> None:
    assert cluster_id_of({"uri": CATALOG, "warehouse": "w"}) == BEFORE
