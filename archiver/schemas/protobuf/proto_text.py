"""Edit a .proto text without changing its meaning on the wire.

Edits blank characters, which keeps lines and columns, or add statements. Grammar:
https://protobuf.dev/reference/protobuf/textformat-spec/ and the specifications beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from schema_mapping.protobuf.column_options import COLUMN_OPTION

JSON_CONFLICTS: Final = b"deprecated_legacy_json_field_conflicts"
_TOKENS: Final = re.compile(
    rb"""//[^\n]*|/\*.*?\*/|\s+|(?P<token>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_0-9]+|.)""", re.DOTALL
)
_NOT_SPACE: Final = re.compile(rb"\S")
_OPENING: Final = frozenset({b"{", b"[", b"(", b"<"})
_CLOSING: Final = frozenset({b"}", b"]", b")", b">"})
_ENDS: Final = frozenset({b";", b"{", b"}"})
_TAB: Final = 8


@dataclass(frozen=True, slots=True)
class Span:
    """Byte offsets; `end` is exclusive."""

    start: int
    end: int

    def __contains__(self, offset: int) -> bool:
        return self.start <= offset < self.end


@dataclass(frozen=True, slots=True)
class Option(Span):
    """`name` is empty for Protobuf's options.

    `has_list`: its value is a list. `in_list`: it stands in brackets.
    """

    name: str = ""
    has_list: bool = False
    in_list: bool = False

    @property
    def can_go(self) -> bool:
        """Protobuf's options and `archiver.column` have a meaning here."""
        return bool(self.name) and self.name.lstrip(".") != COLUMN_OPTION


@dataclass(frozen=True, slots=True)
class ImportLine(Span):
    path: str = ""


@dataclass(frozen=True, slots=True)
class _ProtoToken(Span):
    text: bytes = b""


@dataclass(slots=True)
class ProtoText:
    """Some parts may be missing if the text isn't Protobuf."""

    text: bytes
    options: list[Option] = field(default_factory=list)
    imports: list[ImportLine] = field(default_factory=list)
    messages: list[Span] = field(default_factory=list)
    """The bodies of messages, inner ones before outer ones."""
    _lists: list[tuple[Span, tuple[Option, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        _Reader(self).read()

    def offset(self, line: int, column: int) -> int:
        """Protoc's line and column are from 1, in bytes, with tabs of eight columns."""
        start = 0
        for _ in range(line - 1):
            start = self.text.find(b"\n", start) + 1
        at, offset = 0, start
        while at < column - 1 and offset < len(self.text):
            at += _TAB - at % _TAB if self.text[offset : offset + 1] == b"\t" else 1
            offset += 1
        return offset

    def without(self, spans: Collection[Span]) -> bytes:
        text, spans = bytearray(self.text), frozenset(spans)
        for span in spans:
            if not isinstance(span, Option) or not span.in_list:
                _blank(text, span.start, span.end)
        for brackets, options in self._lists:
            kept = [option for option in options if option not in spans]
            if options and not kept:
                _blank(text, brackets.start, brackets.end)
            elif len(kept) < len(options):
                _keep(text, brackets, kept)
        return bytes(text)

    def with_imports(self, paths: Collection[str]) -> bytes:
        return self.text + b"".join(b'\nimport "%s";' % path.encode() for path in paths)

    def allowing_json_conflicts(self, offsets: Collection[int]) -> bytes:
        bodies = {next((body for body in self.messages if offset in body), None) for offset in offsets}
        text = self.text
        for body in sorted((body for body in bodies if body is not None), key=lambda body: -body.start):
            if JSON_CONFLICTS not in self.text[body.start : body.end]:
                text = text[: body.start] + b" option %s = true; " % JSON_CONFLICTS + text[body.start :]
        return text


def _keep(text: bytearray, brackets: Span, kept: Sequence[Option]) -> None:
    edges = [brackets.start + 1, *(edge for option in kept for edge in (option.start, option.end)), brackets.end - 1]
    for number, start in enumerate(edges[::2]):
        end = edges[2 * number + 1]
        comma = _NOT_SPACE.search(text, start, end)
        _blank(text, start, end)
        if comma is not None and 0 < number < len(kept):
            text[comma.start()] = ord(",")


def _blank(text: bytearray, start: int, end: int) -> None:
    text[start:end] = _NOT_SPACE.sub(b" ", text[start:end])


class _Reader:
    def __init__(self, target: ProtoText) -> None:
        self._target = target
        matches = _TOKENS.finditer(target.text)
        self._tokens = [_ProtoToken(m.start(), m.end(), m["token"]) for m in matches if m["token"] is not None]

    def read(self) -> None:
        tokens, target = self._tokens, self._target
        statement: list[_ProtoToken] = []
        open_bodies: list[tuple[bool, int]] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.text == b"option" and not statement:
                end = self._end(at, {b";"})
                target.options.append(self._option(at + 1, end, Span(token.start, self._after(end))))
                at = end + 1
                continue
            if token.text == b"[":
                at = self._read_list(at)
                continue
            if token.text == b"{":
                words = [part.text for part in statement]
                open_bodies.append((words[:1] == [b"message"] or b"group" in words, token.end))
            elif token.text == b"}" and open_bodies:
                is_message, start = open_bodies.pop()
                if is_message:
                    target.messages.append(Span(start, token.start))
            elif token.text == b";":
                self._read_import(statement, token)
            statement = [] if token.text in _ENDS else [*statement, token]
            at += 1

    def _read_import(self, statement: list[_ProtoToken], semicolon: _ProtoToken) -> None:
        if len(statement) > 1 and statement[0].text == b"import" and statement[-1].text[:1] in {b'"', b"'"}:
            path = statement[-1].text[1:-1].decode(errors="replace")
            self._target.imports.append(ImportLine(statement[0].start, semicolon.end, path))

    def _read_list(self, at: int) -> int:
        start, options = self._tokens[at].start, []
        while True:
            end = self._end(at + 1, {b",", b"]"})
            if end > at + 1:
                span = Span(self._tokens[at + 1].start, self._tokens[end - 1].end)
                options.append(self._option(at + 1, end, span, in_list=True))
            at = end
            if at >= len(self._tokens) or self._tokens[at].text == b"]":
                break
        self._target.options += options
        self._target._lists.append((Span(start, self._after(at)), tuple(options)))  # noqa: SLF001 - its own part
        return at + 1

    def _option(self, at: int, end: int, span: Span, *, in_list: bool = False) -> Option:
        tokens, name = self._tokens, ""
        if at < end and tokens[at].text == b"(":
            close = self._end(at + 1, {b")"})
            name = b"".join(token.text for token in tokens[at + 1 : close]).decode(errors="replace")
        equals = self._end(at, {b"="})
        has_list = equals + 1 < end and tokens[equals + 1].text == b"["
        return Option(span.start, span.end, name, has_list, in_list)

    def _end(self, at: int, ends: Collection[bytes]) -> int:
        depth = 0
        for index in range(at, len(self._tokens)):
            text = self._tokens[index].text
            if depth == 0 and text in ends:
                return index
            depth += (text in _OPENING) - (text in _CLOSING)
        return len(self._tokens)

    def _after(self, place: int) -> int:
        return self._tokens[place].end if place < len(self._tokens) else len(self._target.text)
