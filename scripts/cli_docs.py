"""Writes docs/cli.md from the texts of `--help`, by `make docs`. tests/test_docs.py compares them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from archiver.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
_UNCUT = 10_000
_INTRODUCTION = """# The command line

This page is generated from the help texts (`make docs`). `archiver COMMAND --help` prints the same text.

If the `archiver` script isn't on the path, use `python -m archiver`. If the variable `ARCHIVER_CONFIG` names the
configuration, you may leave out `--config`. Exit codes and output formats: [operations](operations.md#running-it).

**Completion.** Run `archiver --install-completion` in bash, zsh or fish. New shells then complete commands and options.
To install the script yourself:

```sh
source <(_ARCHIVER_COMPLETE=source_bash archiver)                                 # in ~/.bashrc
source <(_ARCHIVER_COMPLETE=source_zsh archiver)                                  # in ~/.zshrc, after compinit
_ARCHIVER_COMPLETE=source_fish archiver > ~/.config/fish/completions/archiver.fish
```

**Colours** are used on a terminal only. `NO_COLOR=1` disables them.

**Log messages of libraries** are hidden, because libraries log a warning for each failed attempt. `--verbose` shows
them, and the traceback of an error. Without `--verbose`, the archiver ends with one error message.
"""


def page() -> str:
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="archiver", **root.context_settings)
    return "\n".join((_INTRODUCTION, *_described(root, context))).strip() + "\n"


def _described(command: Any, context: typer.Context) -> Iterator[str]:
    group = getattr(command, "commands", {})
    if context.parent is not None:
        yield f"## `{context.command_path}`\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if group:
        yield "| command | |\n|---|---|"
        for name, subcommand in group.items():
            path = f"{context.command_path} {name}"
            link = f"[`{name}`](#{path.replace(' ', '-')})"
            yield f"| {link} | {_cell(subcommand.get_short_help_str(_UNCUT))} |"
        yield ""
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    yield "| argument or option | |\n|---|---|"
    yield from (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in filter(None, records))
    yield ""
    for name, subcommand in group.items():
        child = typer.Context(subcommand, info_name=name, parent=context, **subcommand.context_settings)
        yield from _described(subcommand, child)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
