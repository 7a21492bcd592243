"""Mistakes in `index` and `[index]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.errors import ConfigError

TEXT = """
[kafka]
"bootstrap.servers" = "b:9092"
[catalog]
uri = "http://c"
[registry]
dsn = "postgresql://r/x"
{section}
[topics.orders]
index = {index}
"""
PLACE = '[index]\nlocation = "s3://lake/index"'


def load(tmp_path: Path, index: str, section: str = PLACE) -> object:
    path = tmp_path / "archiver.toml"
    path.write_text(TEXT.format(index=index, section=section))
    return load_config(path).topic("orders").index


def test_entries_are_texts_or_tables(tmp_path: Path) -> None:
    index = load(tmp_path, '["key", "header:trace", { column = "val.status", kind = "bitmap" }]')
    assert [(it.column, it.kind) for it in index] == [  # type: ignore[attr-defined]
        ("key", "terms"),
        ("header:trace", "terms"),
        ("val.status", "bitmap"),
    ]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ('["vall.id"]', r"'vall.id' can't be indexed: .* did you mean 'val.id'\?"),
        ('["header"]', "write key, header:NAME"),
        ('["header:"]', "write key, header:NAME"),
        ('["kye"]', "did you mean 'key'"),
        ('["val."]', "can't be indexed"),
        ('["key", "key"]', "key: a column has one index"),
        ('[{ column = "key", kind = "text" }]', "'text' is not known here; allowed: 'terms', 'bitmap'"),
        ('[{ column = "key", kin = "terms" }]', "there is no such key"),
        ('"key"', "is no list of columns"),
        ("[7]", "index"),
        ('["1=1; DROP"]', "can't be indexed"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, index: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, index)


def test_an_index_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"set `location` in \[index\]") as error:
        load(tmp_path, '["key"]', "")
    assert error.value.context["key"] == "topics.orders.index"


@pytest.mark.parametrize("section", ['[index]\nlocation = "lake"', '[index]\nmemory = "1MiB"'])
def test_bad_sections_are_refused(tmp_path: Path, section: str) -> None:
    with pytest.raises(ConfigError, match=r"index\.(location|memory)"):
        load(tmp_path, "[]", section)
