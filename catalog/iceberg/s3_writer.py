"""Write objects to S3 with headers that pyarrow can't send.

Requests are signed with the SHA-256 of their content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, timedelta
from types import TracebackType
from typing import Any, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store
from pyiceberg.io import (
    AWS_ACCESS_KEY_ID,
    AWS_ROLE_ARN,
    AWS_ROLE_SESSION_NAME,
    AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN,
    S3_ACCESS_KEY_ID,
    S3_CONNECT_TIMEOUT,
    S3_ENDPOINT,
    S3_FORCE_VIRTUAL_ADDRESSING,
    S3_PROXY_URI,
    S3_REQUEST_TIMEOUT,
    S3_ROLE_ARN,
    S3_ROLE_SESSION_NAME,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    OutputStream,
)
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.utils.properties import get_first_property_value, property_as_bool

from catalog.iceberg.store_settings import WriteHeaders

PART_BYTES: Final = 10 << 20
"""Smaller objects go up in one request, larger ones in parts of this size."""
_PARTS_AT_ONCE: Final = 2
_RETRIES: Final = 2
_RETRY_SECONDS: Final = 60.0
_SILENCE_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 10.0
_SESSION: Final = "archiver"


class S3Writer:
    """Writes and deletes objects of one bucket. Thread-safe.

    Raises OSError with the store's answer, PermissionError and FileNotFoundError included.
    """

    def __init__(self, properties: Mapping[str, Any], bucket: str, region: str) -> None:
        self._store = _store(properties, bucket, region)
        self._prefix = f"{bucket}/"

    def file(self, file: PyArrowFile) -> PyArrowFile:
        return WrittenFile(file, self)

    def create(self, path: str) -> OutputStream:
        """The object appears when the stream is closed, never after an error in the block."""
        with _os_errors():
            stream: Any = obstore.open_writer(
                self._store,
                path.removeprefix(self._prefix),
                buffer_size=PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )
            return _ObjectStream(stream)

    def delete(self, path: str) -> None:
        """Without a placeholder for the folder."""
        with _os_errors():
            obstore.delete(self._store, path.removeprefix(self._prefix))


class _ObjectStream:
    """Has `closed` as the property that pyarrow's Parquet writer expects."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._size = 0

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed())

    def write(self, data: bytes) -> int:
        written = int(self._stream.write(data))
        self._size += written
        return written

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        if not self.closed:
            self._stream.close()

    def __enter__(self) -> OutputStream:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.closed:
            self._stream.__exit__(kind, error, trace)


class WrittenFile(PyArrowFile):
    def __init__(self, file: PyArrowFile, writer: S3Writer) -> None:
        super().__init__(file.location, file._path, file._filesystem, file._buffer_size)  # noqa: SLF001 - the same file
        self._writer = writer

    def create(self, overwrite: bool = False) -> OutputStream:
        """Raises FileExistsError unless `overwrite`."""
        if not overwrite and self.exists():
            raise FileExistsError(f"Cannot create file, already exists: {self.location}")
        return self._writer.create(self._path)


def _store(properties: Mapping[str, Any], bucket: str, region: str) -> S3Store:
    headers = WriteHeaders.of(properties)
    encryption: dict[str, Any] = {} if headers.algorithm is None else {"server_side_encryption": headers.algorithm}
    if headers.kms_key is not None:
        encryption["sse_kms_key_id"] = headers.kms_key
    endpoint = properties.get(S3_ENDPOINT)
    make: Any = S3Store  # its types know only literal names
    store: S3Store = make(
        bucket,
        region=region,
        disable_bulk_delete=True,  # which some stores don't have
        virtual_hosted_style_request=property_as_bool(dict(properties), S3_FORCE_VIRTUAL_ADDRESSING, endpoint is None),
        **({} if endpoint is None else {"endpoint": _with_bucket(str(endpoint), bucket, properties)}),
        **encryption,
        **_credentials(properties, region),
        client_options=_client(properties),
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
    )
    return store


def _with_bucket(endpoint: str, bucket: str, properties: Mapping[str, Any]) -> str:
    if not property_as_bool(dict(properties), S3_FORCE_VIRTUAL_ADDRESSING, default=False):
        return endpoint
    scheme, separator, host = endpoint.partition("://")
    return f"{scheme}{separator}{bucket}.{host}" if separator else f"https://{bucket}.{endpoint}"


def _credentials(properties: Mapping[str, Any], region: str) -> dict[str, Any]:
    """Without a token from the environment. If empty, the client searches for keys."""
    texts = dict(properties)
    if role := get_first_property_value(texts, S3_ROLE_ARN, AWS_ROLE_ARN):
        name = get_first_property_value(texts, S3_ROLE_SESSION_NAME, AWS_ROLE_SESSION_NAME)
        return {"credential_provider": _role(str(role), str(name or _SESSION), region)}
    key = get_first_property_value(texts, S3_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID)
    secret = get_first_property_value(texts, S3_SECRET_ACCESS_KEY, AWS_SECRET_ACCESS_KEY)
    if not key or not secret:
        return {}
    given = {
        "access_key_id": key,
        "secret_access_key": secret,
        "token": get_first_property_value(texts, S3_SESSION_TOKEN, AWS_SESSION_TOKEN),
        "expires_at": None,
    }
    return {"credential_provider": lambda: given}


def _role(role: str, session_name: str, region: str) -> Callable[[], Any]:
    """The client requests new keys before they expire."""
    import boto3  # only roles need it
    from obstore.auth.boto3 import StsCredentialProvider

    session = boto3.Session(region_name=region)
    request = StsCredentialProvider(session, RoleArn=role, RoleSessionName=session_name)

    def keys() -> dict[str, Any]:
        given: dict[str, Any] = dict(request())
        return given | {"expires_at": given["expires_at"].astimezone(UTC)}  # obstore takes no other class of UTC

    return keys


def _client(properties: Mapping[str, Any]) -> dict[str, Any]:
    connect = float(properties.get(S3_CONNECT_TIMEOUT) or _CONNECT_SECONDS)
    silence = float(properties.get(S3_REQUEST_TIMEOUT) or _SILENCE_SECONDS)
    options: dict[str, Any] = {
        "allow_http": True,
        "http1_only": True,
        "connect_timeout": timedelta(seconds=connect),
        "read_timeout": timedelta(seconds=silence),
        "timeout": timedelta(seconds=_RETRY_SECONDS + silence),
    }
    if proxy := properties.get(S3_PROXY_URI):
        options["proxy_url"] = proxy
    return options


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(_answer(error)) from error
    except (BaseError, OSError) as error:
        raise OSError(_answer(error)) from error


def _answer(error: Exception) -> str:
    return str(error).partition("\n\nDebug source")[0]
