"""Settings of object stores with Iceberg's and pyiceberg's names.

Opens no store, so that configuration is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Self

SSE_TYPE: Final = "s3.sse.type"
SSE_KEY: Final = "s3.sse.key"
CHECKSUMS: Final = "s3.checksums"
WHEN_REQUIRED: Final = "when_required"
PY_IO_IMPL: Final = "py-io-impl"

_SCHEMES: Final = re.compile(r"^(s3|client|adls|gcs|gs|oss|hdfs|abfs|wasb)\.")
_ALGORITHMS: Final = {"none": None, "s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}
"""What each `s3.sse.type` is in the header of a request."""
_SEARCHED: Final = ("s3.role-arn", "client.role-arn", "s3.retry-strategy-impl", "s3.anonymous")
"""Settings that only pyarrow's client has. The writer with headers can't take their place."""

KNOWN: Final = frozenset(
    [
        *(SSE_TYPE, SSE_KEY, CHECKSUMS),
        *("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.region"),
        *("s3.resolve-region", "s3.proxy-uri", "s3.connect-timeout", "s3.request-timeout", "s3.role-arn"),
        *("s3.role-session-name", "s3.force-virtual-addressing", "s3.retry-strategy-impl", "s3.anonymous"),
        *("s3.path-style-access", "s3.session-token-expires-at-ms"),
        *("client.access-key-id", "client.secret-access-key", "client.session-token", "client.region"),
        *("client.role-arn", "client.role-session-name"),
        *("adls.account-name", "adls.account-key", "adls.sas-token", "adls.tenant-id", "adls.client-id"),
        *("adls.client-secret", "adls.blob-storage-authority", "adls.dfs-storage-authority"),
        *("adls.blob-storage-scheme", "adls.dfs-storage-scheme"),
        *("gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.service.host", "gcs.default-bucket-location"),
        *("hdfs.host", "hdfs.port", "hdfs.user", "hdfs.kerberos_ticket"),
    ]
)
"""The settings that the archiver's clients of stores read."""

_INSTEAD: Final = {
    "s3.server-side-encryption": f"set `{SSE_TYPE}` to s3, kms or dsse-kms",
    "s3.sse-kms-key-id": f"set `{SSE_KEY}`",
    "s3.sse.md5": "keys of the customer's own (SSE-C) are not supported: use a KMS key",
    "s3.profile-name": "set AWS_PROFILE in the environment of the archiver and of Spark's workers",
    "s3.checksum-enabled": f'set `{CHECKSUMS}` to "{WHEN_REQUIRED}" to send none',
    "s3.signer": "requests can't be signed by the catalog: have it vend credentials, or give keys",
    "s3.remote-signing-enabled": "requests can't be signed by the catalog: have it vend credentials, or give keys",
}


class StoreSettingError(ValueError):
    """A setting without effect or with an invalid value. Says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHeaders:
    """The headers of S3 writes: encryption and checksums.

    `algorithm` is for `x-amz-server-side-encryption`, `kms_key` a key id.
    """

    algorithm: str | None = None
    kms_key: str | None = field(default=None, repr=False)
    checksums: bool = True

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Self:
        """Read the settings. Raises StoreSettingError for invalid values."""
        kind, key = _text(properties, SSE_TYPE), properties.get(SSE_KEY)
        if kind == "custom":
            raise StoreSettingError(
                f"{SSE_TYPE}: keys of the customer's own (SSE-C) are not supported: write s3, kms or dsse-kms"
            )
        if kind is not None and kind not in _ALGORITHMS:
            raise StoreSettingError(f"{SSE_TYPE}: {kind!r} is no kind of encryption: write none, s3, kms or dsse-kms")
        algorithm = None if kind is None else _ALGORITHMS[kind]
        if key and kind not in {"kms", "dsse-kms"}:
            raise StoreSettingError(f"{SSE_KEY} is the id of a KMS key: it needs `{SSE_TYPE}` kms or dsse-kms")
        checksums = _text(properties, CHECKSUMS)
        if checksums not in {None, "when_supported", WHEN_REQUIRED}:
            raise StoreSettingError(f"{CHECKSUMS}: write when_supported or {WHEN_REQUIRED}")
        return cls(algorithm=algorithm, kms_key=str(key) if key else None, checksums=checksums != WHEN_REQUIRED)

    @property
    def are_usual(self) -> bool:
        return self.algorithm is None and self.checksums


def check_store_settings(properties: Mapping[str, str], prefix: str = "") -> None:
    """Raise StoreSettingError for a setting without effect or an invalid value. `prefix` is of its key.

    With `py-io-impl` settings are unknown.
    """
    if PY_IO_IMPL in properties:
        if mine := sorted({SSE_TYPE, SSE_KEY, CHECKSUMS} & properties.keys()):
            raise StoreSettingError(f"{prefix}{mine[0]} has no effect with `{PY_IO_IMPL}`: leave one of the two out")
        return
    for name in sorted(properties):
        if name == "s3.remote-signing-enabled" and properties[name].lower() == "false":
            continue
        if _SCHEMES.match(name) and name not in KNOWN and not name.startswith("adls.sas-token"):
            raise StoreSettingError(f"{prefix}{name} has no effect here: {_instead(name)}")
    try:
        headers = WriteHeaders.of(properties)
    except StoreSettingError as error:
        raise StoreSettingError(f"{prefix}{error}") from None
    if headers.are_usual:
        return
    for name in _SEARCHED:
        if name in properties:
            cause = SSE_TYPE if headers.algorithm else CHECKSUMS
            raise StoreSettingError(
                f"{prefix}{name} can't be used with `{cause}`: give keys, have the catalog vend credentials, or use the"
                " role of the machine (web identity, container, instance)"
            )


def _instead(name: str) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    near = get_close_matches(name, KNOWN, n=1)
    return f"did you mean `{near[0]}`?" if near else "docs/stores.md lists the settings"


def _text(properties: Mapping[str, Any], name: str) -> str | None:
    value = properties.get(name)
    return None if value is None else str(value).lower()
