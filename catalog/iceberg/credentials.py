"""FileIO properties for storage credentials and their expiry, as REST specification and clients name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from pyiceberg.io import ADLS_ACCOUNT_NAME, ADLS_SAS_TOKEN, PY_IO_IMPL

REMOTE_SIGNING: Final = "s3.remote-signing-enabled"
SIGNER: Final = "s3.signer"
"""pyiceberg's property for the same: Nessie sends both since 0.100 (projectnessie/nessie#9868)."""
_KEYS: Final = (
    "s3.access-key-id",
    "client.access-key-id",
    "s3.role-arn",
    "client.role-arn",
    "s3.profile-name",
    "client.profile-name",
)
_IDENTITIES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables by which AWS's clients find an identity of the machine."""

Properties: TypeAlias = Mapping[str, str]

_CREDENTIAL: Final = re.compile(
    r"^(s3|client|adls|gcs|oss|hf)\..*"
    r"(access-key|secret|token|sas|credential|account-key|shared-key|connection-string|signer|remote-signing)"
)
_EXPIRY: Final = re.compile(r"expires-at(-ms)?(\.|$)|^expiration-time$")
_ACCOUNT_SAS: Final = re.compile(rf"^{re.escape(ADLS_SAS_TOKEN)}\.(?P<account>[^.]+)(\..*)?$")
_ACCOUNT: Final = re.compile(r"^[a-z]+://[^/@]*@(?P<account>[^./]+)\.")


def credentials(properties: Properties) -> dict[str, str]:
    return {name: value for name, value in properties.items() if _CREDENTIAL.match(name) or _EXPIRY.search(name)}


def is_vended(properties: Properties, own: Properties) -> bool:
    """`own` are the configured properties."""
    return any(own.get(name) != value for name, value in credentials(properties).items())


def offers_signing_only(properties: Properties, configured: Properties, environment: Properties) -> bool:
    """Whether a catalog wants to sign S3 requests, and this process has no keys.

    If the machine has a role, operators may set the property to `false`.
    """
    signs = str(properties.get(REMOTE_SIGNING, "")).lower() == "true" or bool(properties.get(SIGNER))
    has_keys = any(properties.get(name) for name in _KEYS) or any(environment.get(name) for name in _IDENTITIES)
    return signs and not has_keys and str(configured.get(REMOTE_SIGNING, "")).lower() != "false"


def expires_ms(properties: Properties) -> int | None:
    """The first expiry in ms since 1970."""
    times = [int(value) for name, value in properties.items() if _EXPIRY.search(name) and value.isdecimal()]
    return min(times, default=None)


def with_own_client(properties: Properties, configured: Properties) -> dict[str, str]:
    """Keep only a configured `py-io-impl`: Nessie sends one for pyiceberg's users."""
    own = {PY_IO_IMPL: configured[PY_IO_IMPL]} if PY_IO_IMPL in configured else {}
    return {name: value for name, value in properties.items() if name != PY_IO_IMPL} | own


def for_clients(properties: Properties, location: str | None) -> dict[str, str]:
    """Catalogs use `adls.sas-token.ACCOUNT.dfs.core.windows.net`, pyarrow `adls.sas-token` and `adls.account-name`."""
    texts = dict(properties)
    address = _ACCOUNT.match(location or "")
    account = texts.get(ADLS_ACCOUNT_NAME) or (address["account"] if address else None)
    for name, value in properties.items():
        match = _ACCOUNT_SAS.match(name)
        if match is not None and account in (None, match["account"]):
            texts[ADLS_SAS_TOKEN] = value
            account = texts[ADLS_ACCOUNT_NAME] = match["account"]
    return texts
