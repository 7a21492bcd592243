"""The syntax of `--where`.

    partition in (0, 3) and time >= 2026-01-31T00:00:00Z and not key starts with 'test-'
    offset < 1200 or header['trace'] = 'abc' or value is null
    meta['case'] = '12' or meta['review'] exists
    val.customer.id = 'x' and val.tier in (1, 2) and val.total >= 99.5 and val.note contains 'late'

`or` binds weakest, then `and`, then `not`. Text in quotes means its UTF-8 bytes ('it''s'), 0x00ff means these bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, TypeVar

from archiver.errors import ConfigError

NumberField: TypeAlias = Literal["partition", "offset", "time"]
BytesField: TypeAlias = Literal["key", "value"]
Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Match: TypeAlias = Literal["starts with", "ends with", "contains"]
ConstantKind: TypeAlias = Literal["text", "bytes", "number", "time", "truth"]


@dataclass(frozen=True, slots=True)
class Header:
    """Holds if it holds for one header of this name."""

    name: bytes


@dataclass(frozen=True, slots=True)
class NumberIs:
    """Times are in ms since 1970, -1 if a record has none."""

    field: NumberField
    comparison: Comparison
    value: int


@dataclass(frozen=True, slots=True)
class BytesAre:
    """Null matches nothing."""

    field: BytesField | Header
    comparison: Comparison | Match
    value: bytes


@dataclass(frozen=True, slots=True)
class NullTest:
    """The key, value or header exists and is null."""

    field: BytesField | Header


@dataclass(frozen=True, slots=True)
class Exists:
    header: Header


@dataclass(frozen=True, slots=True)
class MetaIs:
    """A condition on metadata of the record. It holds if it holds for one of its values; without a value, for any.

    `metadata_terms` replaces it by conditions on keys and offsets.
    """

    name: str
    value: bytes | None = None
    comparison: Comparison | Match = "="


@dataclass(frozen=True, slots=True)
class Constant:
    """As written: text without quotes, bytes in hexadecimal digits."""

    kind: ConstantKind
    text: str


@dataclass(frozen=True, slots=True)
class ColumnIs:
    """A column below `key` or `val`. Null matches nothing."""

    path: tuple[str, ...]
    value: Constant
    comparison: Comparison | Match = "="

    @property
    def column(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Not:
    term: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    terms: tuple[Condition, ...]


Condition: TypeAlias = NumberIs | BytesAre | NullTest | Exists | MetaIs | ColumnIs | Not | AllOf | AnyOf

_TOKENS: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<bytes>0x[0-9A-Fa-f]*)
      | (?P<time>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:\d{2})?)
      | (?P<decimal>-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
      | (?P<number>-?\d+)
      | (?P<path>(?i:key|val|value)(?:\.[A-Za-z_][A-Za-z0-9_]*)+)
      | (?P<word>[A-Za-z_]+)
      | (?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|\[|\]|,)
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_SIGNS: Final[dict[str, Comparison]] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_FIELDS: Final = "partition, offset, time, key, value, header['name'], meta['name'] or a column such as val.customer.id"
_Value = TypeVar("_Value")
_NESTED: Final = 100
_DAY: Final = len("2026-01-31")
_TOO_LARGE: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else f"`{self.text}`"


def parse_where(text: str) -> Condition:
    """Raises ConfigError with the position of a mistake."""
    parser = _Parser(text)
    return parser.whole()


def moment_of(text: str) -> datetime:
    """Parse a time; a day is its midnight in UTC. Raises ValueError."""
    day = text.removesuffix("Z")
    return datetime.fromisoformat(f"{day}T00:00:00Z" if len(day) == _DAY else text)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def whole(self) -> Condition:
        condition = self._any_of()
        if self._here.kind != "end":
            raise self._wrong("expected `and`, `or` or the end")
        return condition

    def _split(self) -> Iterator[_Token]:
        position = 0
        while True:
            match = _TOKENS.match(self._text, position)
            if match is None:
                start = position + len(self._text[position:]) - len(self._text[position:].lstrip())
                rest = self._text[start]
                why = "this text has no closing quote" if rest in "'\"" else f"{rest!r} means nothing here"
                raise self._error(why, start)
            kind = match.lastgroup or "end"
            yield _Token(kind, match[kind], match.start(kind))
            if kind == "end":
                return
            position = match.end()

    @property
    def _here(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._here
        if token.kind != "end":
            self._next += 1
        return token

    def _is(self, *words: str) -> bool:
        ahead = self._tokens[self._next : self._next + len(words)]
        if [token.text.lower() for token in ahead if token.kind in {"word", "sign"}] != [*words]:
            return False
        self._next += len(words)
        return True

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise self._wrong(f"expected `{sign}`")

    def _any_of(self) -> Condition:
        self._depth += 1
        if self._depth > _NESTED:
            raise self._wrong("too many parentheses in each other")
        terms = [self._all_of()]
        while self._is("or"):
            terms.append(self._all_of())
        self._depth -= 1
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def _all_of(self) -> Condition:
        terms = [self._negated()]
        while self._is("and"):
            terms.append(self._negated())
        return terms[0] if len(terms) == 1 else AllOf(tuple(terms))

    def _negated(self) -> Condition:
        negations = 0
        while self._is("not"):
            negations += 1
        if self._is("("):
            condition = self._any_of()
            self._expect(")")
        else:
            condition = self._condition()
        return Not(condition) if negations % 2 else condition

    def _condition(self) -> Condition:
        token = self._here
        if token.kind == "path":
            return self._column()
        match token.text.lower() if token.kind == "word" else "":
            case "partition" | "offset" as field:
                self._take()
                return self._number(field, self._integer)
            case "time" | "timestamp":
                self._take()
                return self._number("time", self._moment)
            case "key" | "value" as field:
                self._take()
                return self._bytes(field)
            case "header":
                self._take()
                self._expect("[")
                header = Header(self._octets())
                self._expect("]")
                return Exists(header) if self._is("exists") else self._bytes(header)
            case "meta":
                self._take()
                self._expect("[")
                name = self._octets().decode("utf-8", "replace")
                self._expect("]")
                return self._meta(name)
            case _:
                raise self._wrong(f"expected {_FIELDS}")

    def _number(self, field: NumberField, value: Callable[[], int]) -> Condition:
        negated = self._is("not")
        if self._is("in"):
            condition = AnyOf(tuple(NumberIs(field, "=", number) for number in self._listed(value)))
            return Not(condition) if negated else condition
        if negated:
            raise self._wrong("expected `in`")
        return NumberIs(field, self._comparison(), value())

    def _bytes(self, field: BytesField | Header) -> Condition:
        if self._is("is"):
            negated = self._is("not")
            if not self._is("null"):
                raise self._wrong("expected `null`")
            return Not(NullTest(field)) if negated else NullTest(field)
        negated = self._is("not")
        condition: Condition
        if self._is("in"):
            condition = AnyOf(tuple(BytesAre(field, "=", value) for value in self._listed(self._octets)))
        else:
            condition = BytesAre(field, self._comparison_or_match(is_negated=negated), self._octets())
        return Not(condition) if negated else condition

    def _meta(self, name: str) -> Condition:
        if self._is("exists"):
            return MetaIs(name)
        negated = self._is("not")
        term: Condition
        if self._is("in"):
            term = AnyOf(tuple(MetaIs(name, value) for value in self._listed(self._octets)))
        else:
            comparison = self._comparison_or_match(is_negated=negated)
            term = MetaIs(name, self._octets(), comparison)
        return Not(term) if negated else term

    def _column(self) -> Condition:
        part, *below = self._here.text.split(".")
        if part.lower() == "value":
            raise self._wrong(f"columns of the value are below `val`: write val.{'.'.join(below)}")
        self._take()
        path = (part.lower(), *below)
        negated = self._is("not")
        condition: Condition
        if self._is("in"):
            condition = AnyOf(tuple(ColumnIs(path, value) for value in self._listed(self._constant)))
        else:
            comparison = self._comparison_or_match(is_negated=negated)
            condition = ColumnIs(path, self._constant(), comparison)
        return Not(condition) if negated else condition

    def _constant(self) -> Constant:
        token = self._here
        match token.kind:
            case "text" | "bytes":
                octets = self._octets()
                return Constant("text", octets.decode()) if token.kind == "text" else Constant("bytes", octets.hex())
            case "number" | "decimal":
                return Constant("number", self._take().text)
            case "time":
                return Constant("time", self._take().text)
            case "word" if token.text.lower() in {"true", "false"}:
                return Constant("truth", self._take().text.lower())
            case _:
                raise self._wrong("expected text in quotes, a number, true, false, a time, or bytes such as 0x00ff")

    def _comparison_or_match(self, *, is_negated: bool) -> Comparison | Match:
        if self._is("contains"):
            return "contains"
        if self._is("starts", "with"):
            return "starts with"
        if self._is("ends", "with"):
            return "ends with"
        if is_negated:
            raise self._wrong("expected `in`, `contains`, `starts with` or `ends with`")
        return self._comparison()

    def _comparison(self) -> Comparison:
        token = self._here
        if token.kind == "sign" and token.text in _SIGNS:
            self._take()
            return _SIGNS[token.text]
        raise self._wrong("expected a comparison such as = or >=")

    def _listed(self, value: Callable[[], _Value]) -> list[_Value]:
        self._expect("(")
        values = [value()]
        while self._is(","):
            values.append(value())
        self._expect(")")
        return values

    def _integer(self) -> int:
        if self._here.kind != "number":
            raise self._wrong("expected a number")
        if abs(int(self._here.text)) >= _TOO_LARGE:
            raise self._wrong("this number is larger than any offset")
        return int(self._take().text)

    def _octets(self) -> bytes:
        token = self._here
        if token.kind == "text":
            self._take()
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote).encode()
        if token.kind == "bytes":
            try:
                octets = bytes.fromhex(token.text[2:])
            except ValueError:
                raise self._wrong("expected two hexadecimal digits for each byte") from None
            self._take()
            return octets
        raise self._wrong("expected text in quotes, or bytes such as 0x00ff")

    def _moment(self) -> int:
        token = self._here
        if token.kind == "number":
            return self._integer()
        if token.kind not in {"time", "text"}:
            raise self._wrong("expected a time such as 2026-01-31T00:00:00Z, or ms since 1970")
        try:
            moment = moment_of(token.text.strip("'\""))
        except ValueError:
            raise self._wrong("this is not a time: write for example 2026-01-31T00:00:00Z") from None
        if moment.tzinfo is None:
            raise self._wrong("the time has no zone: end it with Z or an offset such as +02:00")
        if moment.microsecond % 1000:
            raise self._wrong("records have times in whole milliseconds")
        self._take()
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000

    def _wrong(self, why: str) -> ConfigError:
        token = self._here
        return self._error(f"{why}, found {token.shown}" if why.startswith("expected") else why, token.position)

    def _error(self, why: str, position: int) -> ConfigError:
        marker = " " * position + "^"
        return ConfigError(f"--where, at character {position + 1}: {why}\n    {self._text}\n    {marker}")
