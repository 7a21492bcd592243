"""The meaning of stores' denials and refusals."""

from __future__ import annotations

import pytest

from archiver.errors import StorageDenied
from archiver.storage.store_errors import storage_error
from catalog.iceberg.store_refusals import checksum_advice, denial_advice, is_denied, is_expired

BY = "AWS Error ACCESS_DENIED during PutObject operation: User: arn:aws:iam::1:user/a is not authorized to perform: "
EXPLICIT = [
    f"{BY}s3:PutObject on resource: x with an explicit deny in a resource-based policy",
    f"{BY}s3:PutObject on resource: x with an explicit deny in a service control policy",
    f"{BY}s3:PutObject on resource: x with an explicit deny in an identity-based policy",
]


@pytest.mark.parametrize("text", EXPLICIT)
def test_explicit_denials_are_not_cured_by_grants(text: str):
    advice = denial_advice(OSError(text), "s3://lake/x", writes=True)
    assert is_denied(OSError(text))
    assert "a policy denies this request" in advice
    assert "s3.sse.type" in advice
    assert "rant these" not in advice
    assert "s3.sse.type" not in denial_advice(OSError(text), "s3://lake/x")


def test_plain_denials_name_both_reasons():
    error = OSError("AWS Error ACCESS_DENIED during PutObject operation: Access Denied.")
    assert denial_advice(error, "s3://lake/x", writes=True).endswith("demands encryption, set `s3.sse.type`")
    assert "encryption" not in denial_advice(error, "s3://lake/x")
    assert "encryption" not in denial_advice(error, "gs://lake/x", writes=True)


def test_a_denied_key_is_named():
    error = OSError(f"{BY}kms:GenerateDataKey on resource: arn:aws:kms:x because no identity-based policy allows it")
    assert "allow kms:GenerateDataKey" in denial_advice(error, "s3://lake/x", writes=True)


def test_wrong_and_expired_keys():
    assert "Correct them" in denial_advice(OSError("AWS Error SIGNATURE_DOES_NOT_MATCH (HTTP status 403)"))
    assert is_expired(OSError("AWS Error EXPIRED_TOKEN"))
    assert "expired" in denial_advice(OSError("<Code>ExpiredToken</Code>"))


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("AWS Error UNKNOWN (HTTP status 501) during PutObject operation", "s3://lake/x", True),
        ("AWS Error INTERNAL_FAILURE during UploadPart operation", "s3a://lake/x", True),
        ("AWS Error UNKNOWN (HTTP status 400) during PutObject operation", "s3://lake/x", True),
        ("AWS Error SLOW_DOWN (HTTP status 503) during PutObject operation", "s3://lake/x", False),
        ("Error performing PUT x - status code: 501 Not Implemented: NotImplemented", "s3://lake/x", False),
        ("HTTP status 501", "gs://lake/x", False),
    ],
)
def test_checksums_are_named_if_they_may_be_the_reason(text: str, path: str, named: bool):
    assert (checksum_advice(OSError(text), path) is not None) == named


@pytest.mark.parametrize(
    "code", ["kms:KeyNotFound", "KMS.NotFoundException", "KMS.DisabledException", "KMS.KMSInvalidStateException"]
)
def test_unusable_keys_are_no_missing_objects(code: str) -> None:
    error = FileNotFoundError(f"Object at location x not found: 404 Not Found: <Error><Code>{code}</Code></Error>")
    assert is_denied(error)
    assert f"can't use the key that encrypts ({code})" in denial_advice(error, "s3", writes=True)
    failure = storage_error(error, verb="read", path="s3://lake/x")
    assert isinstance(failure, StorageDenied)
