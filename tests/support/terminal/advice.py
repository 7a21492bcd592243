"""Sentences of the sources that advise removal, loss or rebuilding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCES: Final = ("archiver", "catalog", "schema_mapping")
_ADVICE: Final = re.compile(
    r"\b([Rr]emove|[Dd]elete|[Tt]ake [^.;:]{1,60}\bout|[Aa]ccept(ed)?|[Rr]ebuild|--accept-[a-z]+)\b|--delete\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    file: str
    line: int
    text: str


def advice_in(root: Path) -> Iterator[Advice]:
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            yield from strings_with_advice(path.read_text(encoding="utf-8"), str(path.relative_to(root)))


def strings_with_advice(source: str, file: str) -> Iterator[Advice]:
    tree = ast.parse(source)
    passed_over = {id(node) for node in _parts(tree)}
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        text = _text(node)
        if text is not None and " " in text.strip() and _ADVICE.search(text):
            yield Advice(file=file, line=getattr(node, "lineno", 0), text=text)


def _parts(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from (part for part in ast.walk(node) if part is not node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _text(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)
        case _:
            return None
