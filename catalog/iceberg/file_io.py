"""pyarrow's clients of Azure's and Google's stores, where pyiceberg 0.12 doesn't set them up as we need.

Iceberg's clients write `abfss://CONTAINER@ACCOUNT.HOST/PATH`. pyiceberg takes all between `//` and `/` for the
container's name, which Azure refuses. And it prefers a client of another package, which can't list objects for us.

Google's client tries for a quarter of an hour by default, for each call of ours.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from pyarrow.fs import FileSystem, GcsFileSystem
from pyiceberg.io import ADLS_ACCOUNT_NAME, PY_IO_IMPL, FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

TRY_SECONDS: Final = 30.0
"""How long Google's client tries one call. Those who call it try again."""
_GOOGLE: Final = re.compile(r"^gc?s://")
_AZURE: Final = re.compile(r"^(abfs|wasb)s?://")
_PLACE: Final = re.compile(r"^(?P<container>[^@]*)@(?P<account>[^.]+)")


class AzureFileIO(PyArrowFileIO):
    """Objects in Azure's storage. The account is the location's; without one there, `adls.account-name`.

    Calls raise ValueError if the two differ: the credentials would be those of another account.
    """

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return scheme, container and account, and the path that begins with the container."""
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        return scheme, netloc, netloc.partition("@")[0] + path.removeprefix(netloc)

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        place = _PLACE.match(netloc or "")
        if place is None:
            return super()._initialize_fs(scheme, netloc)
        configured = self.properties.setdefault(ADLS_ACCOUNT_NAME, place["account"])
        if configured != place["account"]:
            raise ValueError(
                f"the location is in the account {place['account']}, and {ADLS_ACCOUNT_NAME} is {configured}: "
                "its credentials are not for this location"
            )
        return super()._initialize_fs(scheme, netloc)


class GoogleFileIO(PyArrowFileIO):
    """Objects in Google's store. A call fails after `TRY_SECONDS` without success."""

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        _, (options,) = super()._initialize_fs(scheme, netloc).__reduce__()  # what it was made with
        return GcsFileSystem(**options | {"retry_time_limit": timedelta(seconds=TRY_SECONDS)})


def suited(io: FileIO, location: str | None) -> FileIO:
    """Return the client for this location: ours for Azure and Google, unless `py-io-impl` chose another, else `io`."""
    if PY_IO_IMPL in io.properties:
        return io
    if _AZURE.match(location or ""):
        return AzureFileIO(dict(io.properties))
    if _GOOGLE.match(location or ""):
        return GoogleFileIO(dict(io.properties))
    return io
