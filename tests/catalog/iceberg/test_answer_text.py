"""Texts of answers are bounded and have no credentials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.exceptions import ForbiddenError

from archiver.storage.store_errors import storage_error
from catalog.errors import CatalogDenied
from catalog.iceberg.answer_text import LONGEST_ANSWER, answer_text
from catalog.iceberg.rest import in_our_words

SECRET = "IQoJb3JpZ2luX2VjEHUaCXVzLWVhc3QtMSJIMEYCIQ+/8h=="
MISMATCH = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Key."
GLUE = f"""SignatureDoesNotMatch: {MISMATCH}

The Canonical String for this request should have been
'GET
/iceberg/v1/config
warehouse=1
host:glue.eu-west-1.amazonaws.com
x-amz-security-token:{SECRET}

host;x-amz-security-token
e3b0'

The String-to-Sign should have been
'AWS4-HMAC-SHA256 20261129T000000Z'"""


def test_a_wrong_signature_does_not_repeat_the_request() -> None:
    with pytest.raises(CatalogDenied) as caught, in_our_words("https://glue.eu-west-1.amazonaws.com/iceberg"):
        raise ForbiddenError(GLUE)
    assert SECRET not in str(caught.value)
    assert "Canonical" not in caught.value.message
    assert f"SignatureDoesNotMatch: {MISMATCH}. Check the AWS identity" in caught.value.message


def test_a_store_does_not_repeat_the_request() -> None:
    digits = " ".join(f"{byte:02x}" for byte in SECRET.encode())
    answer = (
        "Error performing PUT x: status code: 403: <Error><Code>SignatureDoesNotMatch</Code>"
        f"<Message>{MISMATCH}</Message><CanonicalRequest>PUT\nx-amz-security-token:{SECRET}</CanonicalRequest>"
        f"<CanonicalRequestBytes>{digits}</CanonicalRequestBytes><HostId>h</HostId></Error>"
    )
    error = storage_error(OSError(answer), verb="write", path="s3://b/x")
    assert error.context["cause"].endswith(f"{MISMATCH}</Message><HostId>h</HostId></Error>")
    assert "refuses the keys" in error.message
    cut_off = storage_error(OSError(answer.partition("</CanonicalRequest>")[0]), verb="write", path="s3://b/x")
    assert SECRET not in str(cut_off)


@pytest.mark.parametrize(
    "text",
    [
        "x-amz-security-token:{}",
        "X-Amz-Security-Token: {}",
        "https://b.s3.amazonaws.com/x?X-Amz-Security-Token={}&X-Amz-Expires=1",
        '{{"x-amz-security-token": ["{}"]}}',
        '{{\\"X-AMZ-SECURITY-TOKEN\\":\\"{}\\"}}',
        "headers {{'Authorization': 'Bearer {}'}}",
        "authorization=Basic {}",
        "Authorization: AWS4-HMAC-SHA256 Credential=AK/2026/s3, SignedHeaders=host;x-amz-date, Signature={}",
        "Proxy-Authorization: {}",
        "client_secret={}&scope=x",
        "access_token: {}",
        "the server got Bearer {}",
        "the token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{}",
    ],
)
def test_values_of_credentials_are_masked(text: str) -> None:
    secret = "abcDEF123456789012345678"
    shown = answer_text("refused: " + text.format(secret) + "\nhost:x")
    assert secret not in shown
    assert shown.startswith("refused: ")
    assert "***" in shown
    assert shown.endswith("host:x")


@pytest.mark.parametrize(
    "text",
    [
        "User: arn:aws:iam::1:user/a is not authorized to perform: glue:CreateTable with an explicit deny",
        "Principal 'archiver' is not authorized for op CREATE_TABLE",
        "SignedHeaders=host;x-amz-security-token",
        "The security token included in the request is expired",
    ],
)
def test_reasons_stay(text: str) -> None:
    assert answer_text(text) == text


def test_long_answers_end_with_a_sentence_or_line() -> None:
    sentence = "The table is locked by another writer. "
    text = sentence * 200
    shown = answer_text(text)
    head, _, rest = shown.partition(" [")
    assert head.endswith("writer.")
    assert text.startswith(head)
    assert rest == f"{len(text.rstrip()) - len(head):,} more characters]"
    lines = answer_text("at x.y(Z.java:1)\n" * 400)
    assert lines.partition(" [")[0].endswith("(Z.java:1)")


@given(st.text("aA.! \n", max_size=3 * LONGEST_ANSWER))
def test_answers_are_limited(text: str) -> None:
    assert len(answer_text(text)) <= LONGEST_ANSWER + 30
