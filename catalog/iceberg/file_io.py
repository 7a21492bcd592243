"""Clients of S3, Azure and Google with features that pyiceberg 0.12 lacks.

Shared S3 clients, small objects in one request, `abfss://CONTAINER@ACCOUNT.HOST/PATH`, retries below Google's
15 minutes.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pyarrow.fs import FileSystem, GcsFileSystem
from pyiceberg.io import (
    ADLS_ACCOUNT_NAME,
    AWS_ACCESS_KEY_ID,
    PY_IO_IMPL,
    S3_ACCESS_KEY_ID,
    S3_RETRY_STRATEGY_IMPL,
    FileIO,
    InputFile,
    OutputFile,
)
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties
from pyiceberg.utils.properties import get_first_property_value

from catalog.iceberg.store_settings import WriteHeaders, check_store_location

if TYPE_CHECKING:
    from catalog.iceberg.s3_writer import S3Writer

TRY_SECONDS: Final = 30.0
"""How long Google's client tries one call. Those who call it try again."""
_S3: Final = re.compile(r"^s3[an]?://")
_S3_SETTINGS: Final = ("s3.", "client.")
_GOOGLE: Final = re.compile(r"^gc?s://")
_AZURE: Final = re.compile(r"^(abfs|wasb)s?://")
_PLACE: Final = re.compile(r"^(?P<container>[^@]*)@(?P<account>[^.]+)")


class S3FileIO(PyArrowFileIO):
    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """The path begins with the bucket. Raises StoreSettingError for an ARN."""
        check_store_location(location)
        return PyArrowFileIO.parse_location(location, properties)

    def new_output(self, location: str) -> PyArrowFile:
        file = super().new_output(location)
        writer = self._writer(location)
        return file if writer is None else writer.file(file)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Without a placeholder for the folder, which pyarrow would write."""
        uri = location if isinstance(location, str) else location.location
        writer = self._writer(uri)
        if writer is None:
            super().delete(location)
        else:
            writer.delete(self.parse_location(uri, self.properties)[2])

    def _writer(self, location: str) -> S3Writer | None:
        if WriteHeaders.of(self.properties).are_usual:
            return None
        _, bucket, _ = self.parse_location(location, self.properties)
        return _s3_writer(self._settings, bucket)

    @property
    def _settings(self) -> tuple[tuple[str, Any], ...]:
        return tuple(sorted(pair for pair in self.properties.items() if pair[0].startswith(_S3_SETTINGS)))

    def _initialize_s3_fs(self, netloc: str | None) -> FileSystem:
        return _s3_client(self._settings, netloc)


@lru_cache(maxsize=16)
def _s3_client(settings: tuple[tuple[str, Any], ...], netloc: str | None) -> FileSystem:
    properties = dict(settings)
    client = PyArrowFileIO(properties)._initialize_s3_fs(netloc)  # noqa: SLF001 - only here are the settings read
    has_keys = get_first_property_value(properties, S3_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID)
    if not has_keys or S3_RETRY_STRATEGY_IMPL in properties:
        return client  # it renews its credentials by itself, or doesn't tell all that it was made with
    make, (options,) = client.__reduce__()
    small_in_one: FileSystem = make(options | {"allow_delayed_open": True})
    return small_in_one


@lru_cache(maxsize=16)
def _s3_writer(settings: tuple[tuple[str, Any], ...], bucket: str) -> S3Writer:
    from catalog.iceberg.s3_writer import S3Writer  # its client is loaded only if it is used

    return S3Writer(dict(settings), bucket, _s3_client(settings, bucket).region)


class AzureFileIO(PyArrowFileIO):
    """The account is the location's, else `adls.account-name`.

    Calls raise ValueError if they differ: the credentials are of one account.
    """

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        return scheme, netloc, netloc.partition("@")[0] + path.removeprefix(netloc)

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        match = _PLACE.match(netloc or "")
        if match is None:
            return super()._initialize_fs(scheme, netloc)
        configured = self.properties.setdefault(ADLS_ACCOUNT_NAME, match["account"])
        if configured != match["account"]:
            raise ValueError(
                f"the location is in the account {match['account']}, and {ADLS_ACCOUNT_NAME} is {configured}: "
                "its credentials are not for this location"
            )
        return super()._initialize_fs(scheme, netloc)


class GoogleFileIO(PyArrowFileIO):
    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        _, (options,) = super()._initialize_fs(scheme, netloc).__reduce__()  # what it was made with
        return GcsFileSystem(**options | {"retry_time_limit": timedelta(seconds=TRY_SECONDS)})


def suited(io: FileIO, location: str | None) -> FileIO:
    if PY_IO_IMPL in io.properties:
        return io
    if _S3.match(location or ""):
        return S3FileIO(dict(io.properties))
    if _AZURE.match(location or ""):
        return AzureFileIO(dict(io.properties))
    if _GOOGLE.match(location or ""):
        return GoogleFileIO(dict(io.properties))
    return io
