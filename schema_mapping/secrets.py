"""Removes the secrets of URIs from texts that people read."""

from __future__ import annotations

import re
from typing import Final

_USER_AND_PASSWORD: Final = re.compile(r"(?<=://)[^/\s'\"]*:[^/\s'\"]*@")
_WEB_USER: Final = re.compile(r"(?<=http://|ttps://)[^/\s'\"@]*@")
_PARAMETER: Final = re.compile(
    r"(?i)([?&](?:[\w.-]*(?:password|passwd|pwd|secret|token|credential|signature|api-?key|access-?key)[\w.-]*|sig|key)=)"
    r"[^&\s'\"]+"
)


def without_secrets(text: str) -> str:
    """The text without the secrets of its URIs: no user and password, no value of a secret parameter.

    `container@account` in the URI of an object stays: it names a place.
    """
    if "://" not in text and "?" not in text:
        return text
    return _PARAMETER.sub(r"\1***", _WEB_USER.sub("", _USER_AND_PASSWORD.sub("", text)))
