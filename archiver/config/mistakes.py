"""Explains mistakes without showing possible secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from archiver.config.quantities import UnitMissing, bytes_text, parse_bytes, parse_seconds, seconds_text

_LONGEST: Final = 60
_DAY: Final = 86400.0
_GIB: Final = 1 << 30
_THOUGHT_OF_IN_LARGER_UNITS: Final = 3600
"""A smaller number was probably not meant as bytes, nor as seconds of a limit of a day or more by default."""
_BARE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

_KINDS: Final = {
    "string": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "path": "a path in quotes",
    "tuple": 'a list, such as ["a", "b"]',
    "list": 'a list, such as ["a", "b"]',
    "mapping": "a section with keys of its own",
    "dict": "a section with keys of its own",
    "model": "a section with keys of its own",
    "datetime": "a time such as 2026-01-31T00:00:00Z",
    "date": "a time such as 2026-01-31T00:00:00Z",
}
"""The expected value, by the first word of pydantic's name for the mistake."""


@dataclass(frozen=True, slots=True)
class _MistakePlace:
    path: tuple[str, ...]
    field: FieldInfo | None
    section: type[BaseModel] | None
    is_secret: bool


def explain(
    error: ValidationError, kind: type[BaseModel], values: Mapping[str, Any], prefix: tuple[str, ...] = ()
) -> str:
    lines = list(dict.fromkeys(_line(mistake, kind, values, prefix) for mistake in error.errors(include_url=False)))
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} mistakes:", *lines])


def key_text(path: tuple[str, ...]) -> str:
    return ".".join(part if part and _BARE.issuperset(part) else f'"{part}"' for part in path)


def sentence(mistake: ErrorDetails, field: FieldInfo | None, value: Any, *, is_secret: bool = False) -> str:
    shown = "this value" if is_secret else _shown(value)
    context = mistake.get("ctx", {})
    match mistake["type"]:
        case "missing":
            text = "this key is required"
        case "value_error":
            text = str(context["error"])
        case "literal_error":
            text = f"{shown} is not known here; allowed: {', '.join(map(_shown, _literals(field)))}"
        case "string_too_short" | "too_short":
            text = "this must not be empty"
        case "greater_than_equal" | "greater_than":
            least = f"at least {_limit(field, context['ge'])}" if "ge" in context else "more than 0"
            text = f"{shown} is too small: {least}"
        case "less_than_equal":
            text = f"{shown} is too large: at most {_limit(field, context['le'])}"
        case "less_than":
            text = f"{shown} is too large: less than {_limit(field, context['lt'])}"
        case "string_pattern_mismatch" if field is not None and field.description:
            text = f"{shown} is not {field.description}"
        case other if expected := _KINDS.get(other.partition("_")[0]):
            text = f"{shown} is not {expected}"
        case _:
            text = f"{shown} can't be used here"
    return text


def _line(mistake: ErrorDetails, kind: type[BaseModel], values: Mapping[str, Any], prefix: tuple[str, ...]) -> str:
    position = _placed(kind, mistake["loc"])
    value = _value(values, position.path)
    path = (*prefix, *position.path)
    match mistake["type"]:
        case "extra_forbidden":
            text = f"there is no such key{_to_quote(path, value) or _nearest(position)}"
        case "missing" if position.field is not None and _is_section(position.field.annotation):
            text = f"this section is required: add [{key_text(path)}]"
        case "model_attributes_type" if position.field is not None and _tags(position.field):
            tag = _discriminator(position.field)
            text = f"{_shown(value)} is not a section: write {{ {tag} = … }}; allowed: {_allowed(position.field)}"
        case "union_tag_not_found":
            is_format = isinstance(value, Mapping) and not _keys(position.field).isdisjoint(value)
            hint = "" if is_format else _to_quote(path, value)
            text = f"this key is required; allowed: {_allowed(position.field)}{hint}"
            path = (*path, _discriminator(position.field))
        case "union_tag_invalid":
            tag = _discriminator(position.field)
            text = f"{_shown(_value(value, (tag,)))} is not known here; allowed: {_allowed(position.field)}"
            path = (*path, tag)
        case _:
            text = _without_unit(mistake, position) or sentence(
                mistake, position.field, value, is_secret=position.is_secret
            )
    return f"{key_text(path)}: {text}" if path else text


def _placed(kind: type[BaseModel], location: tuple[int | str, ...]) -> _MistakePlace:
    """Pydantic's location also names members of unions."""
    path: list[str] = []
    current: Any = kind
    field: FieldInfo | None = None
    section: type[BaseModel] | None = None
    is_secret = False
    for part in location:
        annotation = _bare(current)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            section, field = annotation, _field(annotation, str(part))
            path.append(str(part))
            current = None if field is None else field.annotation
            is_secret = is_secret or (field is not None and _hides(field))
        elif (member := _member(annotation, part)) is not None:
            current = member
        else:
            path.append(str(part))
            inner = [argument for argument in get_args(annotation) if argument is not Ellipsis]  # of tuple[X, ...]
            current = inner[-1] if inner and get_origin(annotation) is not None else None
    return _MistakePlace(tuple(path), field, section, is_secret)


def _field(section: type[BaseModel], key: str) -> FieldInfo | None:
    fields = section.model_fields
    return fields.get(key) or next((candidate for candidate in fields.values() if candidate.alias == key), None)


def _hides(field: FieldInfo) -> bool:
    return not field.repr or SecretStr in (field.annotation, *get_args(field.annotation))


def _member(annotation: Any, tag: int | str) -> Any:
    for member in _sections(annotation):
        if any(tag in get_args(field.annotation) for field in member.model_fields.values()):
            return member
    return None


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if get_origin(annotation) not in (Union, UnionType):
        return []
    return [
        argument for argument in get_args(annotation) if isinstance(argument, type) and issubclass(argument, BaseModel)
    ]


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = _sections(annotation)
    return members[0] if len(members) == 1 else annotation


def _is_section(annotation: Any) -> bool:
    bare = _bare(annotation)
    origin = get_origin(bare) or bare
    return isinstance(origin, type) and issubclass(origin, BaseModel | Mapping)


def _discriminator(field: FieldInfo | None) -> str:
    return str(field.discriminator) if field is not None and field.discriminator else "format"


def _tags(field: FieldInfo | None) -> list[Any]:
    tag = _discriminator(field)
    members = [] if field is None else _sections(field.annotation)
    return [value for member in members for value in _literals(member.model_fields[tag])]


def _allowed(field: FieldInfo | None) -> str:
    return ", ".join(map(_shown, _tags(field)))


def _keys(field: FieldInfo | None) -> frozenset[str]:
    members = [] if field is None else _sections(field.annotation)
    return frozenset(key for member in members for key in member.model_fields)


def _literals(field: FieldInfo | None) -> list[Any]:
    def within(annotation: Any) -> Iterator[Any]:
        if get_origin(annotation) is Literal:
            yield from get_args(annotation)
            return
        for argument in get_args(annotation):
            yield from within(argument)

    return [] if field is None else list(within(field.annotation))


def _limit(field: FieldInfo | None, limit: float) -> str:
    if _parsed_by(field, parse_bytes):
        return bytes_text(int(limit))
    if _parsed_by(field, parse_seconds):
        return seconds_text(limit)
    return f"{limit:,}"


def _parsed_by(field: FieldInfo | None, parser: Callable[[object], float]) -> bool:
    def validators(annotation: Any) -> Iterator[Any]:
        for argument in get_args(annotation):
            yield argument
            yield from validators(argument)

    present = () if field is None else (*field.metadata, *validators(field.annotation))
    return any(isinstance(validator, BeforeValidator) and validator.func is parser for validator in present)


def _without_unit(mistake: ErrorDetails, place: _MistakePlace) -> str | None:
    error = mistake.get("ctx", {}).get("error")
    if not isinstance(error, UnitMissing):
        return None
    key = key_text(place.path[-1:])
    text = f'every size and duration needs a unit: `{key} = "{error.former}"` is what it meant until now'
    likely = _likely_quantity(error.number, place.field)
    return text if likely is None else f'{text}, `"{likely}"` is likely meant'


def _likely_quantity(number: float, field: FieldInfo | None) -> str | None:
    """None for seconds or bytes.

    Limits without a default, and limits of a day and more, are read as days; sizes as MiB, or GiB if large.
    """
    default = None if field is None else field.get_default(call_default_factory=True)
    if number >= _THOUGHT_OF_IN_LARGER_UNITS:
        return None
    if _parsed_by(field, parse_bytes):
        return f"{number:g}{'GiB' if default is None or default >= _GIB else 'MiB'}"
    return f"{number:g}d" if default is None or default >= _DAY else None


def _value(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        match values:
            case Mapping():
                values = values.get(part)
            case list() | tuple() if part.isdecimal() and int(part) < len(values):
                values = values[int(part)]
            case _:
                return values
    return values


def _shown(value: Any) -> str:
    match value:
        case bool():
            text = str(value).lower()
        case str():
            text = repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")
        case Mapping():
            text = "a section"
        case list() | tuple():
            text = "a list"
        case date():
            text = value.isoformat()
        case _:
            text = "nothing" if value is None else str(value)
    return text


def _nearest(place: _MistakePlace) -> str:
    if place.section is None:
        return ""
    names = sorted(field.alias or name for name, field in place.section.model_fields.items())
    near = get_close_matches(place.path[-1], names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known here: {', '.join(names)}"


def _to_quote(path: tuple[str, ...], value: Any) -> str:
    """TOML reads `[topics.metrics.cpu]` as the key `cpu` of a topic `metrics`."""
    if len(path) != 3 or path[0] != "topics" or not isinstance(value, Mapping):  # noqa: PLR2004 - topics, NAME, key
        return ""
    name = ".".join((*path[1:], *_deeper(value)))
    return f'. If {name!r} is a topic, quote its name: [topics."{name}"]'


def _deeper(value: Mapping[str, Any]) -> Iterator[str]:
    while len(value) == 1 and isinstance(inner := next(iter(value.values())), Mapping):
        yield next(iter(value))
        value = inner
