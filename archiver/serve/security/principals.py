"""Principals: who a client is, in the words that Kafka uses for it (`User:alice`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

NameFrom: TypeAlias = Literal["dn", "common_name"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A client's identity. As text it is `User:` and its name."""

    name: str

    def __str__(self) -> str:
        return f"User:{self.name}"


ANONYMOUS: Final = Principal("ANONYMOUS")
"""Whoever comes in where nobody has to say who they are."""


def principal_of_certificate(der: bytes, name_from: NameFrom = "dn") -> Principal | None:
    """The principal of a client's certificate: its whole DN, as in `User:CN=reader,O=Example`, or its common name.

    The DN is written as Kafka does (RFC 4514): the most specific part first. None where there is no such name.
    """
    subject = x509.load_der_x509_certificate(der).subject
    if name_from == "dn":
        text = subject.rfc4514_string()
        return Principal(text) if text else None
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Principal(str(names[0].value)) if len(names) == 1 else None
