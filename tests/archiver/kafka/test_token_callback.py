"""Tokens from a function."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

from archiver.errors import ConfigError
from archiver.kafka.options import parse_kafka_options
from archiver.kafka.protocol_errors import is_transient, refuses_credentials
from archiver.kafka.token_callback import CallbackTokens, callback_tokens

HERE = "tests.support.kafka.token_functions"
NOW = 1_800_000_000.0


def failing() -> tuple[str, float]:
    raise OSError("hunter2")


def returning(answer: object) -> Callable[[], object]:
    return lambda: answer


def test_a_token_is_used_until_four_fifths_of_its_time_are_over() -> None:
    now, calls = [NOW], []

    def function() -> tuple[str, float]:
        calls.append(now[0])
        return f"token {len(calls)}", now[0] + 100

    tokens = CallbackTokens("m:f", function, clock=lambda: now[0])
    assert tokens.token() == "token 1"
    now[0] += 79
    assert tokens.dated_token() == ("token 1", NOW + 100)
    now[0] += 2
    assert tokens.token() == "token 2"
    assert tokens.oauth_cb("") == ("token 2", NOW + 181, "", {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("a token", "must return a token and when it expires"),
        (("", NOW + 1), "must return a token and when it expires"),
        ((b"token", NOW + 1), "must return a token and when it expires"),
        (("token", str(NOW + 1)), "must return a token and when it expires"),
        (None, "must return a token and when it expires"),
        (("token", 1000 * NOW), "not milliseconds"),
        (("token", NOW - 1), "has expired"),
    ],
)
def test_other_answers_are_refused(answer: object, message: str) -> None:
    tokens = CallbackTokens("m:f", returning(answer), clock=lambda: NOW)
    with pytest.raises(SaslAuthenticationFailedError, match=f"sasl.token.provider: m:f .*{message}") as refused:
        tokens.token()
    assert refuses_credentials(refused.value)


def test_a_function_that_raises_is_called_again() -> None:
    with pytest.raises(KafkaConnectionError, match="m:f raised OSError") as caught:
        CallbackTokens("m:f", failing).token()
    assert is_transient(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:f", "no_such_module:f can't be imported: No module named"),
        (f"{HERE}:no_such_function", "can't be imported: .*no_such_function"),
        (f"{HERE}:not_callable", "is no function"),
    ],
)
def test_names_without_a_function_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        callback_tokens(name)


def test_both_clients_get_the_function() -> None:
    options = parse_kafka_options(
        {
            "bootstrap.servers": "b:9092",
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.token.provider": f"{HERE}:lasting",
            "sasl.oauthbearer.extensions": "tenant=x",
        }
    )
    provider = options.client_configuration()["sasl_oauth_token_provider"]
    assert isinstance(provider, CallbackTokens)
    assert provider is options.token_callback()
    assert provider.token() == "a token"
    assert provider.extensions() == {"tenant": "x"}
    assert provider.oauth_cb("")[2:] == ("", {"tenant": "x"})
