"""OAUTHBEARER tokens from a user's function (`sasl.token.provider = "module:function"`).

It returns a token and its expiry in seconds since 1970, and is called after four fifths of that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from archiver.errors import ConfigError
from archiver.kafka.oauth import parse_extensions

PROVIDER: Final = "sasl.token.provider"
_USED_SHARE: Final = 0.8


class CallbackTokens(AbstractTokenProvider):  # type: ignore[misc]
    """For kafka-python and librdkafka. Thread-safe. No message shows a token.

    Raises KafkaConnectionError if the function raises, SaslAuthenticationFailedError for an invalid token.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[], Any],
        *,
        extensions: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._extensions = dict(extensions or {})
        self._name = name
        self._function = function
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ("", 0.0)
        self._use_until = 0.0

    def token(self) -> str:
        return self.dated_token()[0]

    def dated_token(self) -> tuple[str, float]:
        with self._lock:
            if self._clock() >= self._use_until:
                token, expires = self._call()
                now = self._clock()
                self._token, self._use_until = (token, expires), now + _USED_SHARE * (expires - now)
            return self._token

    def extensions(self) -> dict[str, str]:
        return dict(self._extensions)

    def oauth_cb(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """Token, expiry, no principal (the token has it), extensions."""
        return (*self.dated_token(), "", self.extensions())

    def _call(self) -> tuple[str, float]:
        try:
            answer = self._function()
        except KafkaError:  # it says itself what is wrong
            raise
        except Exception as error:
            raise KafkaConnectionError(
                f"{PROVIDER}: {self._name} raised {type(error).__name__}. Call it on this machine to see why"
            ) from error
        match answer:
            case (str(token), float() | int() as expires) if token:
                pass
            case _:
                raise SaslAuthenticationFailedError(
                    f"{PROVIDER}: {self._name} must return a token and when it expires, in seconds since 1970"
                )
        if expires > _MOST_SECONDS:
            raise SaslAuthenticationFailedError(
                f"{PROVIDER}: {self._name} must return when the token expires in seconds since 1970, not milliseconds"
            )
        if expires <= self._clock():
            raise SaslAuthenticationFailedError(
                f"{PROVIDER}: {self._name} returned a token that has expired. Compare this machine's clock"
            )
        return token, float(expires)


_MOST_SECONDS: Final = 1e11
"""The year 5138 in seconds, 1973 in milliseconds."""


@cache
def callback_tokens(name: str, extensions: str | None = None) -> CallbackTokens:
    """The process's provider for `module:function`. Raises ConfigError."""
    module, _, function = name.partition(":")
    try:
        called: Any = import_module(module)
        for part in function.split("."):
            called = getattr(called, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{PROVIDER}: {name} can't be imported: {error}. Install its module where the archiver and Spark's workers"
            " run, or put its folder into PYTHONPATH",
            option=PROVIDER,
        ) from error
    if not callable(called):
        raise ConfigError(f"{PROVIDER}: {name} is no function", option=PROVIDER)
    return CallbackTokens(name, called, extensions=parse_extensions(extensions or ""))
