"""Names of storage credentials in catalogs and clients."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.errors import CatalogDenied
from catalog.iceberg.credentials import expires_ms, for_clients, is_vended, offers_signing_only
from catalog.iceberg.file_io import S3FileIO
from catalog.iceberg.rest import BoundedRestCatalog, connect
from tests.support.servers.serving import serving

HOST = "account.dfs.core.windows.net"
LOCATION = f"abfss://lake@{HOST}/kafka/orders"


@pytest.mark.parametrize(
    "name",
    [
        "s3.access-key-id",
        "s3.session-token",
        "s3.session-token-expires-at-ms",
        "s3.remote-signing-enabled",
        "client.access-key-id",
        "client.refresh-credentials-endpoint",
        "adls.sas-token",
        f"adls.sas-token.{HOST}",
        f"adls.sas-token-expires-at-ms.{HOST}",
        "adls.account-key",
        "adls.auth.shared-key.account.key",
        f"adls.connection-string.{HOST}",
        "adls.client-secret",
        "adls.token",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "oss.access-key-secret",
        "hf.token",
        "expiration-time",
    ],
)
def test_vended_credentials_are_recognised(name: str) -> None:
    assert is_vended({name: "theirs"}, {})
    assert is_vended({name: "theirs"}, {name: "ours"})
    assert not is_vended({name: "ours"}, {name: "ours"})


@pytest.mark.parametrize("name", ["s3.endpoint", "client.region", "adls.account-name", "gcs.project-id", "warehouse"])
def test_an_address_is_no_credential(name: str) -> None:
    assert not is_vended({name: "theirs"}, {})


def test_the_first_end_counts() -> None:
    assert expires_ms({"s3.session-token-expires-at-ms": "5", f"adls.sas-token-expires-at-ms.{HOST}": "3"}) == 3
    assert expires_ms({"gcs.oauth2.token-expires-at": "7", "gcs.oauth2.token": "9"}) == 7
    assert expires_ms({"s3.session-token": "x", "s3.session-token-expires-at-ms": "soon"}) is None


@pytest.mark.parametrize("key", [f"adls.sas-token.{HOST}", "adls.sas-token.account"])
def test_a_sas_token_of_the_locations_account_is_the_clients(key: str) -> None:
    vended = {"adls.sas-token.other.dfs.core.windows.net": "no", key: "sas"}
    properties = for_clients(vended, LOCATION)
    assert (properties["adls.account-name"], properties["adls.sas-token"]) == ("account", "sas")
    assert properties.items() >= vended.items()


def test_a_sas_token_of_another_account_is_not() -> None:
    assert for_clients({"adls.sas-token.other": "no"}, LOCATION) == {"adls.sas-token.other": "no"}
    assert for_clients({"adls.sas-token.one": "sas"}, None)["adls.account-name"] == "one"


def opened(rest: BoundedRestCatalog, vended: dict[str, str], location: str) -> FileIO:
    return rest._load_file_io(vended, location)


@contextmanager
def answering(config: dict[str, dict[str, str]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(config).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(HTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def catalog() -> Iterator[str]:
    with answering({"defaults": {}, "overrides": {}}) as uri:
        yield uri


FSSPEC = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
PYARROW = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}


@pytest.mark.parametrize("kind", ["defaults", "overrides", "table"])
@pytest.mark.parametrize(("configured", "client"), [({}, S3FileIO), (PYARROW, PyArrowFileIO)])
def test_the_client_is_not_the_catalogs_choice(kind: str, configured: dict[str, str], client: type[FileIO]) -> None:
    """Nessie sends pyiceberg's fsspec client as a default since 0.100 (projectnessie/nessie#9868)."""
    keys = {"s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.region": "eu"}
    with answering({"defaults": {}, "overrides": {}, kind: FSSPEC}) as uri:
        rest = connect({"uri": uri} | keys | configured, timeout_seconds=5)
        with closing(rest):
            io = opened(rest, FSSPEC if kind == "table" else {}, "s3://lake/table")
    assert (type(io), io.properties.get("py-io-impl")) == (client, configured.get("py-io-impl"))


def test_a_signer_without_keys_is_refused() -> None:
    with (
        answering({"defaults": {"s3.signer": "S3V4RestSigner"} | FSSPEC, "overrides": {}}) as uri,
        closing(connect({"uri": uri}, timeout_seconds=5)) as rest,
        pytest.raises(CatalogDenied, match="the catalog signs each request to the store and vends no keys"),
    ):
        opened(rest, {}, "s3://lake/table")


def test_files_are_opened_with_a_vended_sas_token(catalog: str) -> None:
    sas = f"sv=2026&se={int(time.time()) + 900}&sig=x"
    with connect({"uri": catalog, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}, timeout_seconds=5) as rest:
        io = opened(rest, {f"adls.sas-token.{HOST}": sas}, LOCATION)
    assert isinstance(io, PyArrowFileIO)
    assert (io.properties["adls.account-name"], io.properties["adls.sas-token"]) == ("account", sas)


@pytest.mark.parametrize(
    ("table", "configured", "environment", "is_refused"),
    [
        ({"s3.remote-signing-enabled": "true", "s3.signer.uri": "http://c"}, {}, {}, True),
        ({"s3.remote-signing-enabled": "true", "s3.access-key-id": "k"}, {}, {}, False),
        ({"s3.remote-signing-enabled": "true"}, {}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, False),
        ({"s3.remote-signing-enabled": "true"}, {"s3.remote-signing-enabled": "false"}, {}, False),
        ({"s3.remote-signing-enabled": "false"}, {}, {}, False),
        ({"s3.signer": "S3V4RestSigner", "s3.signer.endpoint": "v1/aws/s3/sign"}, {}, {}, True),
        ({}, {"s3.signer": "S3V4RestSigner"}, {}, True),
        ({"s3.signer": "S3V4RestSigner", "s3.access-key-id": "k"}, {}, {}, False),
        ({"s3.signer": "S3V4RestSigner"}, {"s3.remote-signing-enabled": "false"}, {}, False),
        ({}, {}, {}, False),
    ],
)
def test_a_catalog_that_only_signs(
    table: dict[str, str], configured: dict[str, str], environment: dict[str, str], is_refused: bool
) -> None:
    """As Lakekeeper and Nessie answer (projectnessie/nessie#9318, duckdb/duckdb-iceberg#1317)."""
    assert offers_signing_only({**configured, **table}, configured, environment) is is_refused
