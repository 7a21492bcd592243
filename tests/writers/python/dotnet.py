"""JSON as .NET's serializers write it, composed from their sources: there may be no .NET here.

System.Text.Json: `JavaScriptEncoder.Default`, `Utf8JsonWriter`. Newtonsoft.Json: `JavaScriptUtils`, `JsonConvert`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\"}
HTML: Final = "\"&'+<>`"
MOST_PLAIN: Final = 15
"""From 1E+15 on, and below 1E-05, doubles have an exponent."""


def system_text_json(value: Any) -> str:
    return _text(value, _default_encoder, shortest)


def newtonsoft(value: Any) -> str:
    return _text(value, _newtonsoft_text, lambda number: _with_point(shortest(number)))


def _text(value: Any, string: Callable[[str], str], number: Callable[[float], str]) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(value)
        case float():
            return number(value)
        case str():
            return string(value)
        case list():
            return f"[{','.join(_text(item, string, number) for item in value)}]"
        case _:
            members = (f"{string(name)}:{_text(part, string, number)}" for name, part in value.items())
            return f"{{{','.join(members)}}}"


def shortest(number: float) -> str:
    """`double.ToString()` since .NET Core 3.0."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    first = exponent + len(text) - 1
    minus = "-" if sign else ""
    if number == 0:
        return f"{minus}0"
    if not -5 < first < MOST_PLAIN:
        point = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{point}E{'-' if first < 0 else '+'}{abs(first):02}"
    if exponent >= 0:
        return f"{minus}{text}{'0' * exponent}"
    whole = text[: first + 1] or "0"
    return f"{minus}{whole}.{'0' * max(0, -first - 1)}{text[max(0, first + 1) :]}"


def _with_point(text: str) -> str:
    return text if set(".E") & set(text) else f"{text}.0"


def _default_encoder(text: str) -> str:
    return f'"{"".join(map(_default_character, text))}"'


def _default_character(character: str) -> str:
    if character in SHORT:
        return SHORT[character]
    return character if " " <= character < "\x7f" and character not in HTML else _units(character)


def _units(character: str) -> str:
    octets = character.encode("utf-16-be")
    return "".join(f"\\u{octets[at : at + 2].hex().upper()}" for at in range(0, len(octets), 2))


def _newtonsoft_text(text: str) -> str:
    return f'"{"".join(map(_newtonsoft_character, text))}"'


def _newtonsoft_character(character: str) -> str:
    if character == '"' or character in SHORT:
        return SHORT.get(character, '\\"')
    if character < " " or character in "\x85\u2028\u2029":
        return _units(character).lower()
    return character
