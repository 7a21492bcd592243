"""Kafka's error codes as text."""

from __future__ import annotations

import kafka.errors as kafka
import pytest

from archiver.errors import AccessDenied
from archiver.kafka.protocol_errors import explain


@pytest.mark.parametrize("error", [kafka.IllegalSaslStateError(), kafka.SecurityDisabledError()])
def test_a_login_on_a_listener_without_sasl_names_the_protocol(error: kafka.KafkaError) -> None:
    explained = explain(error)
    assert isinstance(explained, AccessDenied)
    assert "takes no login on this listener" in explained.message
    assert "security.protocol" in explained.message


def test_wrong_credentials_name_their_options() -> None:
    assert "Check sasl.* in [kafka]" in explain(kafka.SaslAuthenticationFailedError()).message
