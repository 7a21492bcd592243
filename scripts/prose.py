"""Count the patterns of CONTRIBUTING.md ("The words we use") in texts and names. Each count may only fall.

The allowed counts are in `scripts/prose.json`, by package and pattern. `--record` lowers them to today's counts. Texts
are docstrings, comments, messages of two words or more, and Markdown outside of code. In tests, sleeps, patched
attributes and private names of other objects are counted, too.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
COUNTS: Final = Path(__file__).with_suffix(".json")
LONGEST_TEST_NAME: Final = 60

PATTERNS: Final = {
    name: re.compile(rf"\b(?<![`.-])(?:{words})\b(?![`-])")
    for name, words in {
        "where": r"[Ww]here",
        "those that": r"[Tt]hose (?:that|of|which|who|in|with)|[Tt]hat of|[Oo]ne that|[Oo]f those",
        "asked": r"(?:is|are|was|were|be|been) asked|[Aa]sks?|asked (?:about|for)",
        "tell": r"[Tt]ells?|[Tt]old|untold|[Tt]elling",
        "others": r"[Oo]thers",
        "nobody": r"[Nn]obody|[Ww]hoever|[Ww]hatever|[Ww]ho (?!is|are)\w+s",
        "of its own": r"of (?:ours|its own|their own|our own|his own)",
        "so many": r"[Ss]o (?:many|long|far|much)(?! that)",
        "meanwhile": r"[Ll]ately|[Mm]eanwhile|a moment ago|just before",
        "shall": r"shall|(?:is|are|was|were) to (?!be found)",
        "anew": r"anew|in vain|by (?:that|it)|thereby",
        "goes on": r"(?:goes|went) on|go on|comes? to|came to",
        "leaves of": r"leaves of",
    }.items()
}
_COMMENT: Final = re.compile(r"(?:^|\s)#:? (.*)$", re.MULTILINE)
_DOCSTRING: Final = re.compile(r'"""(.*?)"""', re.DOTALL)
_CODE_BLOCK: Final = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_CODE_SPAN: Final = re.compile(r"`[^`\n]*`")
LOOP_NAMES: Final = frozenset({"each", "one", "those", "other", "others"})
OWN: Final = frozenset({"self", "cls"})
NAMED_TUPLE: Final = frozenset({"_replace", "_asdict", "_fields", "_make"})
UNDERSCORED: Final = frozenset({"KafkaError", "os"})
"""Classes and modules with public names that begin with an underscore: confluent_kafka's codes, `os._exit`."""
LOCAL_NAMES: Final = frozenset({"found", "told", "wanted", "held", "known", "place", "there", "those", "here"})


def counts() -> dict[str, dict[str, int]]:
    totals: dict[str, Counter[str]] = {}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.pyx", "*.pxd", "*.md"],  # noqa: S607 - git of the developer
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.exists() and not name.endswith("_pb2.py") and path not in (Path(__file__), ROOT / "CONTRIBUTING.md"):
            totals.setdefault(package(name), Counter()).update(count(path))
    return {key: dict(sorted(total.items())) for key, total in sorted(totals.items()) if total}


def package(name: str) -> str:
    folders = name.split("/")[:-1]
    return "/".join(folders[: 1 if name.endswith(".md") else 2]) or "top"


def count(path: Path) -> Counter[str]:
    source = path.read_text()
    total: Counter[str] = Counter()
    texts = _COMMENT.findall(source)
    match path.suffix:
        case ".py":
            is_test = path.relative_to(ROOT).parts[0] == "tests"
            for node in ast.walk(ast.parse(source)):
                if is_test:
                    total.update(_coupling(node))
                if isinstance(node, ast.Constant):
                    if isinstance(node.value, str) and " " in node.value.strip():
                        texts.append(node.value)
                else:
                    total.update(_names(node))
        case ".md":
            texts = [_CODE_SPAN.sub("``", _CODE_BLOCK.sub("", source))]
        case _:
            texts += _DOCSTRING.findall(source)
    text = "\n".join(texts)
    for name, pattern in PATTERNS.items():
        total[name] += len(pattern.findall(text))
    return +total


def _names(node: ast.AST) -> dict[str, int]:
    match node:
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            return {"loop name": sum(name in LOOP_NAMES for name in _targets(target))}
        case ast.Assign(targets=targets):
            return {"local name": sum(name in LOCAL_NAMES for target in targets for name in _targets(target))}
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.NamedExpr(target=ast.Name(id=name)):
            return {"local name": int(name in LOCAL_NAMES)}
        case ast.FunctionDef(name=name) if name.startswith("test_") and len(name) > LONGEST_TEST_NAME:
            return {"long test name": 1}
        case _:
            return {}


def _coupling(node: ast.AST) -> dict[str, int]:
    """A sleep of zero seconds waits for nothing."""
    match node:
        case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"), args=[seconds]):
            return {"sleep": not (isinstance(seconds, ast.Constant) and seconds.value == 0)}
        case ast.Call(func=ast.Attribute(attr="setattr")):
            return {"setattr": 1}
        case ast.Attribute(value=ast.Name(id=name)) if name in OWN | UNDERSCORED:
            return {}
        case ast.Attribute(attr=name):
            return {"private name": _is_private(name)}
        case ast.ImportFrom(names=names):
            return {"private name": sum(_is_private(alias.name) for alias in names)}
        case _:
            return {}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def risen(allowed: dict[str, dict[str, int]], today: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{key}: {name}: {number}, allowed {allowed.get(key, {}).get(name, 0)}"
        for key, total in today.items()
        for name, number in total.items()
        if number > allowed.get(key, {}).get(name, 0)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="allow today's counts from now on")
    today = counts()
    if parser.parse_args().record:
        COUNTS.write_text(json.dumps(today, indent=1) + "\n")
        return 0
    lines = risen(json.loads(COUNTS.read_text()), today)
    if lines:
        sys.stdout.write("\n".join([*lines, "See 'The words we use' in CONTRIBUTING.md", ""]))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
