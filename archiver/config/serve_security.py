"""The security sections under `[serve]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from archiver.config.quantities import Bytes, Seconds
from archiver.config.section import Section

PRINCIPAL = r"^User:([^*]+\*?|\*)$"
NAME = r"^([^*]+\*?|\*)$"
PRINCIPAL_WORDS = "a principal: write User:NAME, User:BEGINNING* or User:*"
NAME_WORDS = "a name: write NAME, BEGINNING* or *"

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
TokenAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
OperationWord = Literal["describe", "read", "write", "all"]
_Name = Annotated[str, Field(pattern=NAME, description=NAME_WORDS)]


def _texts(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_texts)]
"""One text, or a list of them."""


class TlsSection(Section):
    certificate: Path
    key: Path
    key_password: str | None = Field(default=None, repr=False)
    client_ca: Path | None = None
    principal: Literal["dn", "common_name"] = "dn"
    least_version: Literal["1.2", "1.3"] = "1.2"
    reload: Seconds = Field(default=10.0, ge=0.1, le=3600.0)


class SaslSection(Section):
    mechanisms: Annotated[tuple[Mechanism, ...], Field(min_length=1)]
    plain_without_tls: bool = False
    session_lifetime: Seconds = Field(default=0.0, ge=0.0, le=7 * 86400.0)


class OauthSection(Section):
    jwks_url: str | None = None
    jwks_file: Path | None = None
    ca_file: Path | None = None
    issuer: str = Field(min_length=1)
    audience: Annotated[Texts, Field(min_length=1)]
    algorithms: Annotated[tuple[TokenAlgorithm, ...], Field(min_length=1)] = ("RS256", "PS256", "ES256")
    principal_claim: str = Field(default="sub", min_length=1)
    clock_skew: Seconds = Field(default=30.0, ge=0.0, le=600.0)
    keys_ttl: Seconds = Field(default=3600.0, ge=1.0, le=86400.0)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("give either `jwks_url` or `jwks_file`, where the issuer's public keys are")
        if self.jwks_url is not None:
            parts = urlsplit(self.jwks_url)
            is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
            if not parts.hostname or parts.scheme not in ("http", "https"):
                raise ValueError("`jwks_url` is no address: write https://HOST/PATH")
            if parts.scheme == "http" and not is_here:
                raise ValueError("`jwks_url` must begin with https://: whoever changes the keys on their way comes in")
        elif self.ca_file is not None:
            raise ValueError("`ca_file` goes with `jwks_url`")
        return self


class AclSection(Section):
    principal: str = Field(pattern=PRINCIPAL, description=PRINCIPAL_WORDS)
    permission: Literal["allow", "deny"] = "allow"
    operations: Annotated[tuple[OperationWord, ...], Field(min_length=1)] = ("read",)
    topics: tuple[_Name, ...] = ()
    groups: tuple[_Name, ...] = ()

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not self.topics and not self.groups:
            raise ValueError("this rule speaks of nothing: give `topics`, `groups` or both")
        return self


class QuotaSection(Section):
    principal: str = Field(pattern=PRINCIPAL, description=PRINCIPAL_WORDS)
    requests_per_second: float | None = Field(default=None, ge=0.1)
    bytes_per_second: Annotated[Bytes, Field(ge=1)] | None = None
    groups: int = Field(default=1000, ge=1, le=50_000)
    member_memory: Bytes = Field(default=32 << 20, ge=1 << 20)
    offset_groups: int = Field(default=10_000, ge=1)
    offset_size: Bytes = Field(default=64 << 20, ge=1 << 20)

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.model_fields_set <= {"principal"}:
            names = ", ".join(f"`{name}`" for name in type(self).model_fields if name != "principal")
            raise ValueError(f"this quota bounds nothing: give one of {names}")
        return self
