"""Settings of object stores with Iceberg's and pyiceberg's names, and of the catalog's client.

Opens no store: configuration is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Final, Self

SSE_TYPE: Final = "s3.sse.type"
SSE_KEY: Final = "s3.sse.key"
CHECKSUMS: Final = "s3.checksums"
WHEN_REQUIRED: Final = "when_required"
PY_IO_IMPL: Final = "py-io-impl"

_OTHER_SPELLINGS: Final = re.compile(r"^(?:fs\.)?s3[an]\.")
"""How Hadoop's names of S3 settings begin."""
_ALGORITHMS: Final = {"none": None, "s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}
"""What each `s3.sse.type` is in the header of a request."""
_ARN: Final = re.compile(r"^s3[an]?://arn:")
_KEYS: Final = ("s3.access-key-id", "client.access-key-id")
_ROLES: Final = ("s3.role-arn", "client.role-arn")
_BY_ALIAS: Final = "write the access point's alias (…-s3alias) in the place of the bucket, in all locations"
_SEARCHED: Final = ("s3.retry-strategy-impl", "s3.anonymous")
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

CATALOG_KNOWN: Final = frozenset(
    [
        *("uri", "warehouse", "type", "prefix", PY_IO_IMPL),
        *("credential", "token", "scope", "audience", "resource", "oauth2-server-uri"),
        *("rest.sigv4-enabled", "rest.signing-region", "rest.signing-name", "rest.sigv4.max-retries"),
        *("rest-page-size", "snapshot-loading-mode", "scan-planning-mode", "namespace-separator"),
        *("view-endpoints-supported", "ssl.cabundle", "ssl.client.cert", "ssl.client.key"),
    ]
)
"""The settings that the catalog's client reads."""
_CATALOG_FAMILIES: Final = ("header.", "auth.", "adls.sas-token")

_INSTEAD: Final = {
    "s3.server-side-encryption": f"set `{SSE_TYPE}` to s3, kms or dsse-kms",
    "s3.sse-kms-key-id": f"set `{SSE_KEY}`",
    "s3.sse.md5": "keys of the customer's own (SSE-C) are not supported: use a KMS key",
    "s3.profile-name": "set AWS_PROFILE in the environment of the archiver and of Spark's workers",
    "client.profile-name": "set AWS_PROFILE in the environment of the archiver and of Spark's workers",
    "s3.checksum-enabled": f'set `{CHECKSUMS}` to "{WHEN_REQUIRED}" to send none',
    "s3.signer": "requests can't be signed by the catalog: have it vend credentials, or give keys",
    "s3.access-points": f"for an access point, {_BY_ALIAS}",
    "s3.use-arn-region-enabled": f"for an access point, {_BY_ALIAS}",
    "s3.multi-region-access-points-enabled": "multi-region access points need another signature, and are not supported",
    "client.assume-role": "for a role, set `s3.role-arn` and `s3.role-session-name`",
    "client.factory": "for a role, set `s3.role-arn` and `s3.role-session-name`",
    "client.credentials-provider": "without keys, the environment, a web identity or the machine's role gives them",
    "glue": (
        "Glue is an Iceberg REST catalog: leave this setting out, and set `uri`, `warehouse` and `rest.signing-region`"
        " (docs/catalogs.md)"
    ),
    "dynamodb": "leave it out: the catalog must be an Iceberg REST catalog",
    "py-catalog-impl": "leave it out: the catalog must be an Iceberg REST catalog",
    "s3.remote-signing-enabled": "requests can't be signed by the catalog: have it vend credentials, or give keys",
}


_OF_OTHER_CLIENTS: Final = (
    *("io-impl", "catalog-impl", "metrics-reporter-impl", "clients", "cache", "encryption", "http-client"),
    *("table-default", "table-override", "view-default", "view-override", "polaris", "nessie", "hf", "jdbc", "hive"),
    *("token-refresh-enabled", "token-exchange-enabled", "token-expires-in-ms", "client.refresh"),
    *("rest.auth", "rest.client", "rest-metrics-reporting-enabled", "rest-table-cache"),
    *("s3.write", "s3.delete", "s3.multipart", "s3.acl", "s3.staging-dir", "s3.preload-client-enabled", "s3.crt"),
    *("s3.acceleration-enabled", "s3.dualstack-enabled", "s3.cross-region-access-enabled", "s3.access-grants"),
    *("s3.retry.num", "s3.retry.min", "s3.retry.max", "s3.analytics-accelerator", "s3.directory-bucket"),
    *("gcs.project-id", "gcs.user-project", "gcs.client-lib-token", "gcs.encryption-key", "gcs.decryption-key"),
    *("gcs.channel", "gcs.delete", "adls.connection-string", "adls.auth", "adls.read", "adls.write", "adls.refresh"),
)
"""How names of settings begin that clients in Java and of other catalogs read."""


class StoreSettingError(ValueError): ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHeaders:
    """`algorithm` is for `x-amz-server-side-encryption`, `kms_key` a key id."""

    algorithm: str | None = None
    kms_key: str | None = field(default=None, repr=False)
    checksums: bool = True

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Self:
        """Raises StoreSettingError for invalid values."""
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
        if name not in KNOWN | CATALOG_KNOWN and not name.startswith(_CATALOG_FAMILIES):
            raise StoreSettingError(f"{prefix}{name} has no effect here: {_instead(name)}")
    try:
        headers = WriteHeaders.of(properties)
        _check_role(properties)
        check_store_location(str(properties.get("warehouse", "")))
    except StoreSettingError as error:
        raise StoreSettingError(f"{prefix}{error}") from None
    if headers.are_usual:
        return
    _check_second_client(properties, SSE_TYPE if headers.algorithm else CHECKSUMS, prefix)


def _check_second_client(properties: Mapping[str, str], cause: str, prefix: str) -> None:
    """Refuse settings that the client with headers can't follow. `cause` is the setting that chose it."""
    role = next((name for name in _ROLES if properties.get(name)), None)
    if role is not None and find_spec("boto3") is None:
        raise StoreSettingError(
            f"{prefix}{role} beside `{cause}` needs boto3: pip install 'kafka-iceberg-archiver[aws]', here and on"
            " Spark's workers"
        )
    if name := next((name for name in _SEARCHED if name in properties), None):
        raise StoreSettingError(
            f"{prefix}{name} can't be used with `{cause}`: give keys, have the catalog vend credentials, or use the"
            " role of the machine (web identity, container, instance)"
        )


def _check_role(properties: Mapping[str, str]) -> None:
    role = next((name for name in _ROLES if properties.get(name)), None)
    key = next((name for name in _KEYS if properties.get(name)), None)
    if role is not None and key is not None:
        raise StoreSettingError(
            f"{role} can't be used with `{key}`: the client assumes roles with the credentials that it finds. Give the"
            " key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, also on Spark's workers, or leave the role out"
        )


def check_store_location(location: str) -> None:
    """Raise StoreSettingError for an ARN: clients would take another part for the bucket's name."""
    if _ARN.match(location):
        raise StoreSettingError(f"{location}: clients can't read an ARN in a location: {_BY_ALIAS}")


def _instead(name: str) -> str:
    usual = _OTHER_SPELLINGS.sub("s3.", name.lower())
    for beginning, hint in _INSTEAD.items():
        if usual == beginning or usual.startswith((f"{beginning}.", f"{beginning}-")):
            return hint
    if any(
        usual == beginning or usual.startswith((f"{beginning}.", f"{beginning}-")) for beginning in _OF_OTHER_CLIENTS
    ):
        hint = ". To log in otherwise, set `auth.type` (docs/catalogs.md)" if usual.startswith("rest.auth") else ""
        return f"leave it out. Other clients, such as Spark's, read it; the archiver's don't{hint}"
    near = get_close_matches(usual, KNOWN | CATALOG_KNOWN, n=1)
    if near:
        return f"did you mean `{near[0]}`? If not, leave it out"
    return "leave it out. docs/catalogs.md and docs/stores.md list the settings"


def _text(properties: Mapping[str, Any], name: str) -> str | None:
    value = properties.get(name)
    return None if value is None else str(value).lower()
