"""Types of public calls, for mypy in `make check`."""

from __future__ import annotations

import ast
import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from archiver.local import LocalStack
from archiver.replay import ReplayConsumer, ReplayMessage

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_"))
EVERY_METHOD = {ReplayConsumer: "replay", ReplayMessage: "replay", LocalStack: "local"}


def asserted(module: str) -> set[str]:
    """Return attribute names in first arguments of `assert_type`."""
    calls = (node for node in ast.walk(ast.parse((HERE / f"{module}.py").read_text())) if isinstance(node, ast.Call))
    stated = (call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "assert_type")
    return {node.attr for first in stated for node in ast.walk(first) if isinstance(node, ast.Attribute)}


def test_mypy_reads_them() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert "tests.typing" in settings["packages"]
    assert settings["strict"]


@pytest.mark.parametrize("module", MODULES)
def test_what_they_name_is_there(module: str) -> None:
    assert import_module(f"tests.typing.{module}")
    assert asserted(module)


@pytest.mark.parametrize(("owner", "module"), EVERY_METHOD.items())
def test_every_public_method_has_its_type_stated(owner: type, module: str) -> None:
    public = {name for name, _ in inspect.getmembers(owner, callable) if not name.startswith("_")}
    assert public - asserted(module) == set()
