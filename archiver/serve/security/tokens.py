"""OAUTHBEARER: the client's message (RFC 7628) and the token's verification."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import jwt

from archiver.errors import AuthenticationFailed
from archiver.serve.security.token_keys import TokenKeys

Algorithm: TypeAlias = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
"""Signatures by a key pair only: a token with none, or one by a secret that both share, is refused."""

_LONGEST_SECONDS: Final = 10 * 365 * 86400.0
_FIRST: Final = re.compile(
    rb"[ny],(?P<authzid>a=[^,]*)?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)*)\x01", re.DOTALL
)
_BEARER: Final = re.compile(rb"bearer +(?P<token>[-_A-Za-z0-9.~+/]+=*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bearer:
    """`authzid` may be empty."""

    token: str
    authzid: str

    @classmethod
    def parse(cls, message: bytes) -> Bearer:
        """Raises AuthenticationFailed if the message is malformed."""
        matched = _FIRST.fullmatch(message)
        pairs = dict(pair.split(b"=", 1) for pair in matched["pairs"].split(b"\x01") if pair) if matched else {}
        bearer = _BEARER.fullmatch(pairs.get(b"auth", b""))
        if matched is None or bearer is None:
            raise AuthenticationFailed("the message has no bearer token")
        authzid = (matched["authzid"] or b"").removeprefix(b"a=").decode(errors="replace")
        return cls(bearer["token"].decode(), authzid.replace("=2C", ",").replace("=3D", "="))


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """`expires`: seconds since 1970, with `grace` seconds of tolerance."""

    name: str
    expires: float
    grace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    issuer: str
    audiences: Sequence[str]
    algorithms: Sequence[Algorithm] = ALGORITHMS
    principal_claim: str = "sub"
    clock_skew: float = 30.0


class Tokens:
    def __init__(self, rules: TokenRules, keys: TokenKeys) -> None:
        self._rules = rules
        self._keys = keys

    async def verified(self, bearer: Bearer) -> VerifiedToken:
        """Raises AuthenticationFailed if the token is invalid."""
        rules = self._rules
        try:
            header = jwt.get_unverified_header(bearer.token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise AuthenticationFailed(f"the token can't be read: {error}") from None
        algorithm = header.get("alg")
        if algorithm not in rules.algorithms:
            raise AuthenticationFailed(f"tokens signed with {algorithm!r} aren't taken here")
        claims = self._claims(bearer.token, str(algorithm), await self._keys.fitting(header.get("kid"), str(algorithm)))
        name = claims.get(rules.principal_claim)
        if not isinstance(name, str) or not name:
            raise AuthenticationFailed(f"the token has no claim {rules.principal_claim!r} with a name")
        if bearer.authzid not in ("", name):
            raise AuthenticationFailed("a client may authenticate for itself only")
        return VerifiedToken(name, min(float(claims["exp"]), time.time() + _LONGEST_SECONDS), rules.clock_skew)

    def _claims(self, token: str, algorithm: str, keys: Sequence[Any]) -> dict[str, Any]:
        rules = self._rules
        reason = "no key of the issuer fits it"
        for key in keys:
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    issuer=rules.issuer,
                    audience=list(rules.audiences),
                    leeway=rules.clock_skew,
                    options={"require": ["exp", "iss", "aud"]},
                )
            except jwt.InvalidSignatureError:
                reason = "its signature is wrong"
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
                reason = str(error)
            else:
                return claims
        raise AuthenticationFailed(f"the token isn't taken: {reason}")
