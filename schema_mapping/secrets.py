"""Removes secrets from URIs in texts for people."""

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
    """Remove user, password and secret parameters of URIs. An object's `container@account` stays."""
    if "://" not in text and "?" not in text:
        return text
    return _PARAMETER.sub(r"\1***", _WEB_USER.sub("", _USER_AND_PASSWORD.sub("", text)))
