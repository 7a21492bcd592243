"""The meaning of a store's refusal and the remedy, by its client's error text."""

from __future__ import annotations

import re
from typing import Final

from catalog.iceberg.store_settings import CHECKSUMS, SSE_TYPE, WHEN_REQUIRED

_EXPIRED: Final = re.compile(r"EXPIRED_TOKEN|ExpiredToken|Token has expired|token expired", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch"
    r"|INVALID_CLIENT_TOKEN_ID|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN|EXPIRED_TOKEN|ExpiredToken"
    r"|HTTP (?:status|response code:) 40[13]|status code: 40[13]|Forbidden|AWS Error \[code 15\]"
    r"|Azure Error: \[\w*\] 40[13]|Status\((?:PERMISSION_DENIED|UNAUTHENTICATED)"
)
_EXPLICIT: Final = re.compile(r"explicit(?:ly)? (?:deny|denied|denies)|explicitDeny", re.IGNORECASE)
_KEY_UNUSABLE: Final = re.compile(
    r"kms:KeyNotFound|KMSNotConfigured"
    r"|KMS\.(?:NotFound|Disabled|KMSInvalidState|InvalidKeyUsage|KeyUnavailable)(?:Exception)?"
)
"""Codes of S3 (API reference, "List of SSE-related error codes") and of MinIO, which answers 404."""
_ROLE: Final = re.compile(r"AssumeRole\w*(?= operation)|(?<=sts:)AssumeRole\w*")
_KEY_RIGHT: Final = re.compile(r"kms:\w+")
_WRONG_KEYS: Final = re.compile(
    r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|INVALID_CLIENT_TOKEN_ID"
    r"|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN|UNAUTHENTICATED"
)
_ENCRYPTS: Final = "If a policy of the bucket demands encryption, set"
_BY_CHECKSUMS: Final = re.compile(
    r"HTTP status (?:400|50[01])|INTERNAL_FAILURE|InternalError|NotImplemented|NOT_IMPLEMENTED"
    r"|x-amz-(?:trailer|sdk-)|\bCRC|checksum",
    re.IGNORECASE,
)
_WITHOUT_CHECKSUMS: Final = "Error performing"
"""How errors of the client begin that sends none by itself."""


def is_denied(error: Exception) -> bool:
    text = str(error)
    return isinstance(error, PermissionError) or bool(_DENIED.search(text) or _KEY_UNUSABLE.search(text))


def is_expired(error: Exception) -> bool:
    return bool(_EXPIRED.search(str(error)))


def denies_explicitly(error: Exception) -> bool:
    """Whether a policy denies the request, so that no grant helps."""
    return bool(_EXPLICIT.search(str(error)))


def denial_advice(error: Exception, path: str = "", *, writes: bool = False) -> str:
    text = str(error)
    encrypts = writes and path.startswith("s3") and not text.count(_WITHOUT_CHECKSUMS)
    if (named := _named_reason(text)) is not None:
        return named
    if denies_explicitly(error):
        return (
            "access denied: a policy denies this request, whatever else is granted. Change the request or the policy"
            " that the cause names" + (f". If it demands encryption, set `{SSE_TYPE}` (docs/stores.md)" * encrypts)
        )
    if is_expired(error):
        return "access denied: the credentials have expired. Give new ones in the catalog's section"
    if _WRONG_KEYS.search(text):
        return "access denied: the store refuses the keys. Correct them in the catalog's section"
    return "access denied. Grant these credentials the right on this path, or correct them in the catalog's section" + (
        f". {_ENCRYPTS} `{SSE_TYPE}`" * encrypts
    )


def _named_reason(text: str) -> str | None:
    if role := _ROLE.search(text):
        return (
            f"access denied: AWS refuses the role ({role[0]}). Its trust policy must name these credentials, and they"
            f" need sts:{role[0]}; or correct `s3.role-arn`"
        )
    if unusable := _KEY_UNUSABLE.search(text):
        return (
            f"the store can't use the key that encrypts ({unusable[0]}): the key doesn't exist, is disabled, or is in"
            " another region or account. Correct `s3.sse.key`, or enable the key"
        )
    if key_right := _KEY_RIGHT.search(text):
        return (
            f"access denied to the key that encrypts: allow {key_right[0]} to these credentials in the key's policy"
            " (writing needs kms:GenerateDataKey, reading kms:Decrypt, parts need both), or set another `s3.sse.key`"
        )
    return None


def checksum_advice(error: Exception, path: str) -> str | None:
    text = str(error)
    if not path.startswith("s3") or _WITHOUT_CHECKSUMS in text or not _BY_CHECKSUMS.search(text):
        return None
    return (
        f'Stores other than AWS\'s (R2, OVH, older Ceph) may refuse its checksum: set {CHECKSUMS} = "{WHEN_REQUIRED}"'
        " (docs/stores.md)"
    )
