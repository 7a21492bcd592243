"""The token functions of docs/configuration.md."""

from __future__ import annotations

import base64
import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from archiver.kafka.token_callback import CallbackTokens

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
EXPIRY = datetime(2036, 5, 6, 7, 8, 9, tzinfo=UTC)


def documented(function: str) -> CallbackTokens:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (source,) = [block for block in blocks if f"def {function}(" in block]
    module: dict[str, Any] = {}
    exec(source, module)
    return CallbackTokens(f"my_tokens:{function}", module[function])


def libraries(monkeypatch: pytest.MonkeyPatch, **content: Any) -> None:
    for name, value in content.items():
        dotted = name.replace("__", ".")
        module = ModuleType(dotted)
        vars(module).update(value)
        monkeypatch.setitem(sys.modules, dotted, module)


def test_entra(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credential:
        def get_token(self, *scopes: str) -> SimpleNamespace:
            """As azure.core.credentials.TokenCredential: an AccessToken with whole seconds."""
            assert scopes == ("https://example.servicebus.windows.net/.default",)
            return SimpleNamespace(token="entra's", expires_on=int(EXPIRY.timestamp()))

    libraries(monkeypatch, azure={}, azure__identity={"DefaultAzureCredential": Credential})
    assert documented("entra").dated_token() == ("entra's", EXPIRY.timestamp())


def test_google(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credentials:
        token: str | None = None
        expiry: datetime | None = None
        service_account_email = "archiver@project.iam.gserviceaccount.com"

        def refresh(self, request: object) -> None:
            """As google.auth.credentials.Credentials: the expiry is in UTC, without a zone."""
            assert isinstance(request, Request)
            self.token, self.expiry = "ya29.google's", EXPIRY.replace(tzinfo=None)

    class Request: ...

    def default(scopes: list[str]) -> tuple[Credentials, str]:
        assert scopes == ["https://www.googleapis.com/auth/cloud-platform"]
        return Credentials(), "project"

    auth = ModuleType("google.auth")
    libraries(
        monkeypatch,
        google={"auth": auth},
        google__auth__transport={},
        google__auth__transport__requests={"Request": Request},
    )
    vars(auth)["default"] = default
    monkeypatch.setitem(sys.modules, "google.auth", auth)
    token, expires = documented("managed_kafka").dated_token()
    assert expires == EXPIRY.timestamp()
    header, claims, access = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in token.split(".")
    )
    assert json.loads(header) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert (
        json.loads(claims).items()
        >= {
            "exp": expires,
            "iss": "Google",
            "scope": "kafka",
            "sub": Credentials.service_account_email,
        }.items()
    )
    assert access == "ya29.google's"
