"""Texts of servers' answers for error messages: without credentials, and limited."""

from __future__ import annotations

import re
from typing import Final

LONGEST_ANSWER: Final = 2_000
"""In characters."""

_SIGNED: Final = re.compile(r"\bThe (?:Canonical String|String-to-Sign)\b.*", re.IGNORECASE | re.DOTALL)
"""What AWS says after a wrong signature: the request with its headers, in which the session token is one."""
_SIGNED_XML: Final = re.compile(
    r"<(CanonicalRequest|StringToSign)(Bytes)?>.*?(?:</\1(?:Bytes)?>|\Z)", re.IGNORECASE | re.DOTALL
)
"""The same in XML, which also has the bytes in hexadecimal digits."""
_NAMED: Final = re.compile(
    r"""
    \b(
        x-amz-(?:security-token|signature|s3session-token)
        | (?:proxy-)?authorization | (?:set-)?cookie
        | (?:access|refresh|session|id|sas|security|subject|actor|client)[-_]?token
        | client[-_]secret | secret[-_]access[-_]key | (?:account|api|x-api)[-_]key | password
    )
    ([\\"'\]]*[ \t]*[:=][ \t]*[\\"'\[]*)
    (?:(?:Basic|Bearer|Digest|Negotiate|AWS4[\w-]*)[ \t]+(?:(?:Credential|SignedHeaders|Signature)=\S+[ \t]*)*)?
    [^\s"'<>,\\\]]*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_UNNAMED: Final = re.compile(r"\bBearer\s+[\w.~+/=-]{20,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|(?=\n)")


def without_credentials(text: str) -> str:
    """The request that an answer repeats is left out, too."""
    text = _SIGNED_XML.sub("", _SIGNED.sub("", text))
    return _UNNAMED.sub("***", _NAMED.sub(r"\1\2***", text)).rstrip()


def limited(text: str) -> str:
    if len(text) <= LONGEST_ANSWER:
        return text
    head = text[:LONGEST_ANSWER]
    ends = [match.end() for match in _SENTENCE_END.finditer(head, LONGEST_ANSWER // 2)]
    end = ends[-1] if ends else LONGEST_ANSWER
    return f"{head[:end].rstrip()} [{len(text) - end:,} more characters]"


def answer_text(text: str) -> str:
    return limited(without_credentials(text))
