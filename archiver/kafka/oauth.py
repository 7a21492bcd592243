"""OAUTHBEARER tokens from an OpenID Connect endpoint, like librdkafka's `oidc` method.

Cached per process until four fifths of their life are over.
"""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

if TYPE_CHECKING:
    import requests

_TIMEOUT_SECONDS: Final = (10.0, 30.0)
_USED_SHARE: Final = 0.8
_DEFAULT_LIFE_SECONDS: Final = 60.0
_BUSY: Final = 500
_SLOW_DOWN: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """`extensions` are `name=value,name=value`; `ca` is a file of certificate authorities."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: str | None = None
    ca: str | None = None


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Thread-safe. No message shows a secret.

    Raises KafkaConnectionError without an answer, SaslAuthenticationFailedError without a token.
    """

    def __init__(self, client: OidcClient) -> None:
        super().__init__()
        self._client = client
        self._lock = threading.Lock()
        self._token = ""
        self._use_until = 0.0

    def token(self) -> str:
        with self._lock:
            if time.monotonic() >= self._use_until:
                asked_at = time.monotonic()
                self._token, life = self._ask()
                self._use_until = asked_at + _USED_SHARE * life
            return self._token

    def extensions(self) -> dict[str, str]:
        return parse_extensions(self._client.extensions or "")

    def _ask(self) -> tuple[str, float]:
        import requests  # few clients use tokens, and all take these options

        client = self._client
        pair = f"{client.client_id}:{client.client_secret}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}", "Accept": "application/json"}
        body = {"grant_type": "client_credentials"} | ({"scope": client.scope} if client.scope else {})
        try:
            answer = requests.post(
                client.endpoint, data=body, headers=headers, timeout=_TIMEOUT_SECONDS, verify=client.ca or True
            )
        except requests.RequestException as error:
            said = type(error).__name__
            raise KafkaConnectionError(f"the token endpoint {client.endpoint} gives no answer: {said}") from error
        if answer.status_code >= _BUSY or answer.status_code == _SLOW_DOWN:
            raise KafkaConnectionError(f"the token endpoint {client.endpoint} answers with {answer.status_code}")
        fields = _json(answer)
        token = fields.get("access_token")
        if not answer.ok or not isinstance(token, str) or not token:
            reason = fields.get("error_description") or fields.get("error") or "no access_token in the answer"
            raise SaslAuthenticationFailedError(
                f"the token endpoint {client.endpoint} answers with {answer.status_code}: {reason}"
            )
        life = fields.get("expires_in")
        return token, float(life) if isinstance(life, int | float) and life > 0 else _DEFAULT_LIFE_SECONDS


@cache
def tokens_of(client: OidcClient) -> OidcTokens:
    return OidcTokens(client)


def parse_extensions(text: str) -> dict[str, str]:
    """Raises ValueError."""
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    if any(not name or not equals for name, equals, _ in pairs):
        raise ValueError("write name=value,name=value")
    return {name: value for name, _, value in pairs}


def _json(answer: requests.Response) -> dict[str, Any]:
    import requests

    try:
        body = answer.json()
    except requests.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}
