"""Functions for `sasl.token.provider`."""

from __future__ import annotations

import json
import os
import time
from typing import Final

import requests

ENDPOINT: Final = "TESTS_TOKEN_ENDPOINT"
"""The variable with the token endpoint's address, the user and the password, as JSON."""

not_callable = 1


def lasting() -> tuple[str, float]:
    return "a token", time.time() + 3_600


def from_endpoint() -> tuple[str, int]:
    url, user, password = json.loads(os.environ[ENDPOINT])
    form = {"grant_type": "client_credentials", "scope": "kafka"}
    answer = requests.post(url, data=form, auth=(user, password), timeout=10)
    answer.raise_for_status()
    return answer.json()["access_token"], int(time.time() + answer.json()["expires_in"])
