"""Public names exist and are explained."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = ("archiver", "catalog", "schema_mapping")
PUBLIC = (
    "archiver.archive.batches",
    "archiver.cli",
    "archiver.config",
    "archiver.engine",
    "archiver.kafka",
    "archiver.local",
    "archiver.replay",
    "archiver.replay.consumer",
    "archiver.schemas",
    "archiver.storage.parquet",
    "archiver.views.duckdb",
    "archiver.wire",
    "catalog.registry",
    "schema_mapping",
)
"""Packages that others import from: these must say what is public."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
FILES = ("toml", "service", "pex")
"""Endings of files that are called `archiver.…`."""


def packages() -> Iterator[str]:
    for root in ROOTS:
        yield root
        within = walk_packages(import_module(root).__path__, f"{root}.")
        yield from (module.name for module in within if module.ispkg)


def public(package: str) -> list[str]:
    return list(getattr(import_module(package), "__all__", ()))


def public_modules(package: str) -> set[str]:
    return {name for name in public(package) if names_a_module(package, name)}


def names_a_module(package: str, name: str) -> bool:
    return is_module(f"{package}.{name}") and isinstance(getattr(import_module(package), name, sys), ModuleType)


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what should be a package is a module
        return False


NAMES = [(package, name) for package in packages() for name in public(package)]
LISTS_MODULES = [package for package in packages() if public_modules(package)]
"""Packages that import nothing themselves: others import their modules, those that are listed."""


@cache
def tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec
    assert spec.origin
    return ast.parse(Path(spec.origin).read_text())


def home(package: str, name: str) -> str:
    for node in ast.walk(tree(package)):
        if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
            return home(node.module, name) if node.module.startswith(ROOTS) else node.module
    return package


def explained(package: str, name: str) -> bool:
    value, module = getattr(import_module(package), name), home(package, name)
    if not module.startswith(ROOTS):
        return True
    if isinstance(value, ModuleType):
        return bool(value.__doc__)
    for node in tree(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) is not None
    return has_text_below(tree(module), name)


def has_text_below(module: ast.Module, name: str) -> bool:
    for node, after in zip(module.body, [*module.body[1:], ast.Pass()], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return False


@pytest.mark.parametrize("package", PUBLIC)
def test_a_package_that_others_use_says_what_is_public(package: str) -> None:
    assert public(package)


@pytest.mark.parametrize("package", [*packages()])
def test_a_package_says_what_it_is_for(package: str) -> None:
    assert (import_module(package).__doc__ or "").strip()


@pytest.mark.parametrize("package", sorted({package for package, _ in NAMES}))
def test_names_are_listed_once(package: str) -> None:
    assert len(public(package)) == len(set(public(package)))


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_public_name_is_there_and_explained(package: str, name: str) -> None:
    if names_a_module(package, name):
        assert (import_module(f"{package}.{name}").__doc__ or "").strip()
        return
    assert hasattr(import_module(package), name)
    assert explained(package, name), f"{home(package, name)}.{name} needs a docstring, or a line of text below it"


@cache
def sources() -> dict[Path, ast.Module]:
    paths = (path for root in ROOTS for path in (ROOT / root).rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in paths}


@cache
def imports() -> frozenset[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    for path, tree in sources().items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(ROOTS):
                pairs |= {(module, f"{node.module}.{alias.name}") for alias in node.names}
            elif isinstance(node, ast.Import):
                pairs |= {(module, alias.name) for alias in node.names if alias.name.startswith(ROOTS)}
    return frozenset(pairs)


@pytest.mark.parametrize("package", LISTS_MODULES)
def test_others_import_only_modules_that_are_listed(package: str) -> None:
    used = {
        imported.removeprefix(f"{package}.").split(".")[0]
        for module, imported in imports()
        if imported.startswith(f"{package}.") and not f"{module}.".startswith(f"{package}.")
    }
    assert {name for name in used if is_module(f"{package}.{name}")} == public_modules(package)


def resolves(dotted: str) -> bool:
    module, *rest = dotted.split(".")
    while rest and is_module(f"{module}.{rest[0]}"):
        module = f"{module}.{rest.pop(0)}"
    if not rest:
        return True
    value: object = import_module(module)
    for name in rest[:-1]:
        value = getattr(value, name, None)
    return hasattr(value, rest[-1]) or rest[-1] in getattr(value, "__annotations__", {})


@cache
def literals() -> frozenset[str]:
    """Return all strings: table properties are called `archiver.…`, too."""
    nodes = (node for tree in sources().values() for node in ast.walk(tree))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def dotted_names(text: str) -> set[str]:
    spans = re.findall(r"`([^`]+)`", without_blocks(text))
    names = {
        name for span in spans for name in re.findall(rf"(?<![\w./-])(?:{'|'.join(ROOTS)})(?:\.\w+)+(?![\w-])", span)
    }
    return {name for name in names if name.rpartition(".")[2] not in FILES}


def paths(text: str) -> set[str]:
    folders = "|".join((*ROOTS, "tests", "bench", "conf", "scripts", "proto", "requirements"))
    return set(re.findall(rf"`((?:{folders})/[\w./-]*)`", without_blocks(text)))


def imported(text: str) -> set[str]:
    blocks = re.findall(r"^```python$(.*?)^```", text, re.MULTILINE | re.DOTALL)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    return {
        f"{node.module}.{alias.name}" for node in nodes for alias in node.names if f"{node.module}".startswith(ROOTS)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_a_page_are_in_the_code(page: Path) -> None:
    text = page.read_text()
    defined = literals()
    assert {name for name in dotted_names(text) if name not in defined and not resolves(name)} == set()
    assert {name for name in imported(text) if not resolves(name)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_a_page_are_in_the_tree(page: Path) -> None:
    missing = {path for path in paths(page.read_text()) if not (ROOT / path).exists()}
    assert {path for path in missing if not (ROOT / "proto" / path).exists()} == set()


@cache
def module_files() -> frozenset[str]:
    folders = (*ROOTS, "tests", "bench", "scripts")
    return frozenset(path.name for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_a_page_calls_by_file_name_are_in_the_tree(page: Path) -> None:
    text = page.read_text()
    made = set(re.findall(r"^`(\w+\.py)`:\n\n```", text, re.MULTILINE))  # the page itself shows what is in them
    assert set(re.findall(r"`(\w+\.py)`", without_blocks(text))) - made <= module_files()


def test_the_map_has_every_room() -> None:
    named = paths((ROOT / "docs" / "architecture.md").read_text())
    rooms = {package.replace(".", "/") for package in packages() if package.count(".") == 1}
    assert rooms <= {path.rstrip("/") for path in named}


def test_wrong_names_are_found() -> None:
    text = (
        "`archiver.replay.ReplayConsumer`, `archiver.nowhere`, `a=archiver.wire.Gone,catalog.errors` and `tests/gone`"
    )
    assert {name for name in dotted_names(text) if not resolves(name)} == {"archiver.nowhere", "archiver.wire.Gone"}
    assert paths(text) == {"tests/gone"}
    assert imported("```python\nfrom archiver.replay import Gone\n```\n") == {"archiver.replay.Gone"}
    assert not resolves("archiver.replay.Gone")
    assert resolves("schema_mapping.RowMapping.schema_version")
