"""Signed tokens and their public keys."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://login.example.org"
AUDIENCE = "archive"


@dataclass
class TokenIssuer:
    kid: str = "one"
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    @property
    def jwk(self) -> dict[str, Any]:
        made = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**made, "kid": self.kid, "use": "sig", "alg": "RS256"}

    def jwks(self, *others: TokenIssuer) -> str:
        return json.dumps({"keys": [self.jwk, *(item.jwk for item in others)]})

    def token(
        self,
        name: str = "reader",
        life_seconds: float = 300.0,
        *,
        algorithm: str = "RS256",
        key: Any = None,
        **claims: Any,
    ) -> str:
        """Claims that are None are left out."""
        now = time.time()
        events = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + life_seconds} | claims
        events = {name: value for name, value in events.items() if value is not None}
        return jwt.encode(events, self.key if key is None else key, algorithm=algorithm, headers={"kid": self.kid})
