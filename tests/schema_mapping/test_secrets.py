"""URIs without secrets."""

from __future__ import annotations

import pickle

import pytest

from schema_mapping.errors import ContextError
from schema_mapping.secrets import without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:hush@host:8181/api", "http://host:8181/api"),
        ("https://hush@host/api", "https://host/api"),
        ("http://me:hu@sh@host/api", "http://host/api"),
        ("postgresql://me:hush@db:5432/archiver?sslmode=require", "postgresql://db:5432/archiver?sslmode=require"),
        ("http://a:1,http://me:hush@b:2", "http://a:1,http://b:2"),
        ("no route to 'socks5://me:hush@proxy:1080': refused", "no route to 'socks5://proxy:1080': refused"),
        ("https://s/b/k?X-Amz-Signature=hush&x=1", "https://s/b/k?X-Amz-Signature=***&x=1"),
        ("https://a.blob/c?sv=1&sig=hush%2F&se=2", "https://a.blob/c?sv=1&sig=***&se=2"),
        ("/v1/tokens?client_secret=hush", "/v1/tokens?client_secret=***"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("s3://lake/kafka/orders@1:2/data", "s3://lake/kafka/orders@1:2/data"),
        ("http://host:8181/a and me@mail", "http://host:8181/a and me@mail"),
        ("nothing: at@all", "nothing: at@all"),
    ],
)
def test_secrets_of_uris_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_errors_show_none_either() -> None:
    error = ContextError("no answer of http://me:hush@host", catalog="http://me:hush@host", at="x", partition=3)
    for text in (str(error), error.message, str(error.context), str(pickle.loads(pickle.dumps(error)))):
        assert "hush" not in text
    assert error.context == {"catalog": "http://host", "at": "x", "partition": 3}
