from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.table import CommitTableRequest, TableIdentifier
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCreate,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    TableRequirement,
    TableUpdate,
)

from catalog.errors import CatalogDenied, CatalogRefused, CatalogUnreachable, MetadataUnwritable, TableError
from catalog.iceberg.commit_answer import CommitAnswer
from catalog.iceberg.rest import commit_text, connect, in_our_words
from tests.support.catalog.memory import NOTE, MemoryCatalog, schema
from tests.support.servers.serving import answering


def connecting(uri: str, **properties: str) -> None:
    with connect({"uri": uri, **properties}, timeout_seconds=0.3):
        pass


def test_a_catalog_that_accepts_and_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CatalogUnreachable, match="no answer"):
            connecting(uri)
        with pytest.raises(CatalogUnreachable, match="no answer"):
            connecting(uri, credential="user:hush", **{"oauth2-server-uri": f"{uri}/token"})


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CatalogUnreachable, match=f"Is it running.*127.0.0.1:{port}") as caught:
        connecting(f"http://127.0.0.1:{port}")
    assert caught.value.retryable


def test_wrong_credentials_are_named_and_never_shown():
    refusal = {"error": "invalid_client", "error_description": "no such client"}
    with answering(401, refusal) as uri, pytest.raises(CatalogDenied, match=r"catalog\.credential") as caught:
        connecting(uri, credential="user:hush", **{"oauth2-server-uri": f"{uri}/token"})
    assert "hush" not in str(caught.value)
    assert not caught.value.retryable


def test_something_else_at_the_address():
    with (
        answering(200, "hello") as uri,
        pytest.raises(CatalogUnreachable, match="not one of the Iceberg REST protocol"),
    ):
        connecting(uri)


@pytest.mark.parametrize("properties", [{}, {"uri": "thrift://somewhere", "type": "hive"}])
def test_only_rest_catalogs_are_spoken(properties: dict[str, str]):
    with pytest.raises(CatalogRefused, match="REST"):
        connect(properties, timeout_seconds=1)


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (requests.ReadTimeout("slow"), CatalogUnreachable),
        (exceptions.CommitStateUnknownException("500"), CatalogUnreachable),
        (exceptions.ServiceUnavailableError("503"), CatalogUnreachable),
        (exceptions.ForbiddenError("403"), CatalogDenied),
        (exceptions.NoSuchNamespaceError("404"), CatalogRefused),
        (exceptions.BadRequestError("400"), CatalogRefused),
        (PermissionError("403"), CatalogDenied),
        (OSError("the store is away"), MetadataUnwritable),
        (OSError("AWS Error ACCESS_DENIED during PutObject operation: with an explicit deny"), CatalogDenied),
        (OSError("status code: 403 Forbidden: <Code>AccessDenied</Code>"), CatalogDenied),
        (OSError("AWS Error EXPIRED_TOKEN (HTTP status 403)"), MetadataUnwritable),
    ],
)
def test_failures_in_our_words(raised: Exception, ours: type[TableError]):
    with pytest.raises(ours, match=r"kafka\.orders") as caught, in_our_words("http://catalog", "kafka.orders"):
        raise raised
    assert caught.value.__cause__ is raised


def test_a_setting_that_needs_another_package_is_told(monkeypatch: pytest.MonkeyPatch):
    """Signing by AWS's rules does, which Glue needs."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, pytest.raises(CatalogRefused, match="package boto3"):
        connecting(uri, **{"rest.sigv4-enabled": "true"})


def test_messages_are_whole():
    reason = "x" * 500 + " explicit deny in the policy Encrypt"
    with pytest.raises(CatalogDenied, match="explicit deny in the policy Encrypt"), in_our_words("http://catalog"):
        raise exceptions.ForbiddenError(reason)


def test_lines_of_a_store_are_kept():
    answer = (
        'Error performing PUT x: status code: 403 Forbidden: <?xml version="1.0" encoding="UTF-8"?>\n'
        "<Error><Code>AccessDenied</Code>\n<Message>not authorized with an explicit deny in\n"
        " the policy Encrypt</Message></Error>"
    )
    with pytest.raises(CatalogDenied, match="a policy denies this request") as caught, in_our_words("http://catalog"):
        raise OSError(answer)
    assert caught.value.context["cause"] == "OSError: " + answer.replace("\n ", " ").replace("\n", " ")


def test_pages_of_proxies_lose_their_markup():
    page = "<html><head><style>a {\n}</style><title>403 Forbidden</title></head>\n<body><h1>Not from here</h1></body>"
    with pytest.raises(CatalogDenied, match=r"payload: 403 Forbidden Not from here\. "), in_our_words("http://catalog"):
        raise exceptions.ForbiddenError(f"RESTError 403: Could not decode json payload: {page}</html>")


@pytest.mark.parametrize(
    ("uri", "reason", "advice"),
    [
        (
            "https://glue.eu-west-1.amazonaws.com/iceberg",
            "AccessDeniedException: a is not authorized to perform: glue:CreateTable with an explicit deny in a policy",
            "A policy denies this request, and no grant helps: change the policy that the catalog names",
        ),
        (
            "https://s3tables.eu-west-1.amazonaws.com/iceberg",
            "AccessDeniedException: User: arn:aws:iam::1:user/a is not authorized to perform: s3tables:CreateTable",
            "Check the AWS identity that signs (environment, profile or role), and its rights",
        ),
        (
            "http://polaris:8181/api/catalog",
            "Principal 'archiver' is not authorized for op CREATE_TABLE",
            "Check catalog.credential or catalog.token, and what they may do in the catalog",
        ),
    ],
)
def test_denials_of_catalogs_say_what_helps(uri: str, reason: str, advice: str):
    with pytest.raises(CatalogDenied) as caught, in_our_words(uri):
        raise exceptions.ForbiddenError(reason)
    assert caught.value.message.endswith(f"ForbiddenError: {reason}. {advice}")
    assert not caught.value.retryable


def test_a_denied_manifest_is_not_tried_again():
    with pytest.raises(CatalogDenied, match="a policy denies this request") as caught, in_our_words("http://catalog"):
        raise OSError("AWS Error ACCESS_DENIED during PutObject operation: x with an explicit deny in a policy")
    assert not caught.value.retryable
    assert "Grant" not in caught.value.message


def test_a_manifest_refused_for_its_checksum_names_the_setting():
    with pytest.raises(MetadataUnwritable, match=r"s3\.checksums"), in_our_words("http://catalog"):
        raise OSError("AWS Error UNKNOWN (HTTP status 501) during PutObject operation: x")


def test_our_own_errors_pass():
    own = MetadataUnwritable("own")
    with pytest.raises(MetadataUnwritable) as caught, in_our_words("http://catalog"):
        raise own
    assert caught.value is own


def test_proxies_are_looked_up_once_per_server(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def proxies_of(url: str, no_proxy: str | None = None) -> dict[str, str]:
        asked.append(url)
        return {"http": "http://127.0.0.1:9"} if "away" in url else {}

    monkeypatch.setattr("requests.sessions.get_environ_proxies", proxies_of)
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        session = catalog.session
        for _ in range(3):
            session.get(f"{uri}/v1/config")
            with pytest.raises(requests.exceptions.ConnectionError):
                session.get("http://away.test/v1/config")
    own = [address for address in asked if address.startswith(uri)]
    assert len(own) <= 2, "one for each session: that of the configuration, and that of tables"
    assert len(asked) - len(own) == 1


def test_metadata_that_is_known_is_not_made_again(tmp_path: Path) -> None:
    memory = MemoryCatalog(tmp_path)
    metadata = json.loads(memory.load().iceberg.metadata.model_dump_json())
    answer = {"metadata-location": "s3://lake/v1.metadata.json", "metadata": metadata, "config": {"a": "first"}}
    about = {"defaults": {}, "overrides": {}}
    with answering(200, about | answer) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        first = catalog.load_table("kafka.orders")
        answer["config"] = {"a": "second"}
        with answering(200, about | answer) as later, connect({"uri": later}, timeout_seconds=3) as second:
            again = second.load_table("kafka.orders", first)
    assert again.metadata is first.metadata
    assert (again.config, again.io.properties["a"]) == ({"a": "second"}, "second")
    assert again.catalog is second


@pytest.mark.parametrize(
    "change",
    [
        {"metadata-location": "s3://lake/v2.metadata.json"},
        {"table-uuid": str(uuid4())},
        {"last-updated-ms": 1},
        {"properties": {"archiver.offsets": "{}"}, "last-updated-ms": 2},
    ],
    ids=["another file", "made anew", "changed", "changed by hand"],
)
def test_metadata_that_is_another_is_read(tmp_path: Path, change: dict[str, Any]) -> None:
    metadata = json.loads(MemoryCatalog(tmp_path).load().iceberg.metadata.model_dump_json())
    answer = {"metadata-location": "s3://lake/v1.metadata.json", "metadata": metadata, "defaults": {}, "overrides": {}}
    with answering(200, answer) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        first = catalog.load_table("kafka.orders")
    answer["metadata-location"] = change.pop("metadata-location", answer["metadata-location"])
    answer["metadata"] = metadata | change
    with answering(200, answer) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        second = catalog.load_table("kafka.orders", first)
        whole = catalog.load_table("kafka.orders")
    assert second.metadata is not first.metadata
    assert second.metadata == whole.metadata


def test_errors_are_those_of_any_load(tmp_path: Path) -> None:
    table = MemoryCatalog(tmp_path).load().iceberg
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        with pytest.raises(ValidationError):
            catalog.load_table("kafka.orders", table)
        with answering(404, {"error": {"type": "x", "message": "gone", "code": 404}}) as away:
            catalog.uri = away
            with pytest.raises(exceptions.NoSuchTableError):
                catalog.load_table("kafka.orders", table)


@pytest.mark.parametrize(("failures", "is_known"), [(1, True), (2, True), (1, False)])
def test_who_knows_a_table_asks_again_after_a_passing_error(tmp_path: Path, failures: int, *, is_known: bool) -> None:
    metadata = json.loads(MemoryCatalog(tmp_path).load().iceberg.metadata.model_dump_json())
    answer = {"metadata-location": "s3://lake/v1.metadata.json", "metadata": metadata, "defaults": {}, "overrides": {}}
    with answering(200, answer) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        table = catalog.load_table("kafka.orders")
        get, left = catalog.session.get, iter(range(failures))

        def failing(place: str) -> requests.Response:
            response = get(place)
            response.status_code = 503 if next(left, None) is not None else 200
            return response

        catalog.session.get = failing
        if is_known and failures == 1:
            assert catalog.load_table("kafka.orders", table).metadata is table.metadata
        else:
            with pytest.raises(exceptions.ServiceUnavailableError):
                catalog.load_table("kafka.orders", table if is_known else None)
        assert next(left, None) is None


STATUSES = (200, 400, 401, 403, 404, 409, 418, 419, 429, 500, 501, 502, 503, 504)


@pytest.mark.parametrize("status", STATUSES)
def test_a_commit_is_sent_and_judged_as_pyiceberg_does_it(tmp_path: Path, status: int) -> None:
    table = MemoryCatalog(tmp_path).load().iceberg
    body = {"metadata-location": "s3://lake/v2.metadata.json", "metadata": json.loads(table.metadata.model_dump_json())}
    about = {"defaults": {}, "overrides": {}, "error": {"type": "x", "message": "no", "code": status}}

    def sent(catalog: Any, send: Any) -> Any:
        post = catalog.session.post
        requests_of: list[Any] = []
        catalog.session.post = lambda *given, **named: requests_of.append((given, named)) or post(*given, **named)
        try:
            return send(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), ()), requests_of
        except Exception as error:  # noqa: BLE001 - whatever pyiceberg makes of it
            return (type(error), str(error)), requests_of
        finally:
            catalog.session.post = post

    with (
        answering(200, about | body) as uri,
        connect({"uri": uri}, timeout_seconds=3) as catalog,
        answering(status, about | body) as judging,
    ):
        catalog.uri = judging
        seen = [sent(catalog, send) for send in (catalog.commit_table, catalog.send_commit)]
    (theirs, their_requests), (ours, our_requests) = seen
    assert our_requests == their_requests
    if status < 400:
        assert (ours.metadata, ours.metadata_files) == (theirs.metadata, [])
        assert ours.properties == theirs.metadata.properties
    else:
        assert ours == theirs


@pytest.mark.parametrize("status", [400, 403, 409, 422, 500])
def test_an_unknown_state_is_no_refusal_whatever_the_status_is(status: int, tmp_path: Path):
    table = MemoryCatalog(tmp_path).load().iceberg
    error = {"message": "no answer from the database", "type": "CommitStateUnknownException", "code": status}
    about = {"defaults": {}, "overrides": {}}
    with (
        answering(200, about) as uri,
        connect({"uri": uri}, timeout_seconds=3) as catalog,
        answering(status, {"error": error}) as judging,
    ):
        catalog.uri = judging
        with pytest.raises(exceptions.CommitStateUnknownException, match="no answer from the database"):
            catalog.send_commit(table, (), ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "{}",
        '{"metadata": {}}',
        '{"metadata": 1, "metadata-location": "x"}',
        '{"metadata": {"table-uuid": "x", "properties": [1, 2]}, "metadata-location": "x"}',
        '{"metadata": {"table-uuid": "x", "properties": {"a": {}}}, "metadata-location": "x"}',
        '{"metadata": {"table-uuid": "x", "metadata-log": ["x"]}, "metadata-location": "x"}',
        '{"metadata": {"table-uuid": "x", "metadata-log": [{"timestamp-ms": 1}]}, "metadata-location": "x"}',
    ],
)
def test_an_answer_that_is_none_leaves_the_commit_open(text: str) -> None:
    with pytest.raises(ValidationError):
        CommitAnswer.read(text)


def added_schemas(tmp_path: Path, requirement: TableRequirement, *, renumbers: bool) -> list[tuple[int, int, int]]:
    """Return id, number of fields and `last-column-id` of each schema in a commit."""
    updates: tuple[TableUpdate, ...] = (AddSchemaUpdate(schema=schema(NOTE)), SetCurrentSchemaUpdate())
    identifier = TableIdentifier.model_validate({"namespace": ["kafka"], "name": "orders"})
    request = CommitTableRequest(identifier=identifier, requirements=(requirement,), updates=updates)
    text = commit_text(request, MemoryCatalog(tmp_path).load().iceberg, renumbers=renumbers)
    added = [update for update in json.loads(text)["updates"] if update["action"] == "add-schema"]
    return [
        (update["schema"]["schema-id"], len(update["schema"]["fields"]), update["last-column-id"]) for update in added
    ]


def test_an_empty_schema_comes_first_if_renumbered(tmp_path: Path) -> None:
    assert added_schemas(tmp_path, AssertCreate(), renumbers=True) == [(0, 0, 0), (1, 3, 102)]
    assert added_schemas(tmp_path, AssertCreate(), renumbers=False) == [(0, 3, 102)]
    exists = AssertTableUUID(uuid=uuid4())
    assert added_schemas(tmp_path, exists, renumbers=True) == [(0, 3, 102)]
