"""The condition of a search, made of all its options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypedDict, Unpack

from archiver.errors import ConfigError
from archiver.records.selection import AtOffset, AtTime, Earliest, Latest, Point, Selection
from archiver.records.where import Where
from archiver.records.where_syntax import AllOf, AnyOf, BytesAre, Condition, Header, MetaIs, NumberIs, parse_where


class FindOptions(TypedDict, total=False):
    """`headers` and `metadata` are texts `name=value`."""

    where: str | None
    key: str | None
    headers: Sequence[str]
    metadata: Sequence[str]
    start: str | None
    end: str | None
    partitions: Sequence[int]
    limit: int | None
    oldest_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FindQuery:
    """The records to find, the newest first unless `oldest_first`.

    `where` includes the restrictions of partitions, offsets and times.
    """

    where: Where
    partitions: tuple[int, ...] = ()
    limit: int | None = None
    oldest_first: bool = False

    @classmethod
    def parse(cls, **options: Unpack[FindOptions]) -> Self:
        """Raise ConfigError. Unlike in a replay, a start or end time restricts timestamps, not offsets."""
        selection = Selection.parse(start=options.get("start"), end=options.get("end"))
        where, key = options.get("where"), options.get("key")
        terms: list[Condition] = [] if where is None else [parse_where(where)]
        if key is not None:
            terms.append(BytesAre("key", "=", octets_of(key)))
        terms += map(_header, options.get("headers", ()))
        terms += (MetaIs(*named_value(text)) for text in options.get("metadata", ()))
        terms += _between(selection.start, selection.end)
        partitions = tuple(sorted(set(options.get("partitions", ()))))
        if partitions:
            terms.append(AnyOf(tuple(NumberIs("partition", "=", number) for number in partitions)))
        terms = terms or [NumberIs("offset", ">=", 0)]
        condition = terms[0] if len(terms) == 1 else AllOf(tuple(terms))
        return cls(
            where=Where(where or "", condition),
            partitions=partitions,
            limit=options.get("limit"),
            oldest_first=options.get("oldest_first", False),
        )


def octets_of(text: str) -> bytes:
    """Parse hexadecimal digits after `0x`, else UTF-8. Raises ConfigError."""
    if not text.startswith("0x"):
        return text.encode("utf-8", "surrogateescape")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise ConfigError(
            "--key: 0x begins bytes, with two hexadecimal digits for each. For a text that begins so, write"
            " --where \"key = '0x…'\"",
            key=text,
        ) from None


def _header(text: str) -> Condition:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ConfigError("--header is no name and value: write name=value", found=text)
    return BytesAre(Header(name.encode("utf-8", "surrogateescape")), "=", value.encode("utf-8", "surrogateescape"))


def named_value(text: str) -> tuple[str, bytes]:
    """Split `NAME=VALUE`. Raises ConfigError."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ConfigError("--meta is no name and value: write NAME=VALUE, such as case=12", found=text)
    return name, value.encode("utf-8", "surrogateescape")


def _between(start: Point, end: Point) -> Iterator[Condition]:
    match start:
        case AtOffset(offset):
            yield NumberIs("offset", ">=", offset)
        case AtTime(timestamp):
            yield NumberIs("time", ">=", timestamp)
        case Latest():
            raise ConfigError("--from is an offset or a time: no record comes after the end of the archive")
        case Earliest():
            pass
    match end:
        case AtOffset(offset):
            yield NumberIs("offset", "<", offset)
        case AtTime(timestamp):
            yield NumberIs("time", "<", timestamp)
        case Earliest():
            raise ConfigError("--to is an offset or a time: no record comes before the beginning of the archive")
        case Latest():
            pass
