"""Writes docs/cli.md: every command with its arguments and options, as `--help` tells them.

Run it by `make docs` after a change of the command line. tests/test_docs.py holds the page equal to the help.
"""

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

This page is made from the help texts (`make docs`), so `archiver COMMAND --help` says the same.

`python -m archiver` is the same command where its script isn't on the path. `--config` may be left out if the variable
`ARCHIVER_CONFIG` names the file. Exit codes and the form of the output: [operations](operations.md#running-it).

**Completion.** `archiver --install-completion` makes the bash, zsh or fish that you type it in complete commands and
options, from its next start on. To place the script yourself:

```sh
source <(_ARCHIVER_COMPLETE=source_bash archiver)                                 # in ~/.bashrc
source <(_ARCHIVER_COMPLETE=source_zsh archiver)                                  # in ~/.zshrc, after compinit
_ARCHIVER_COMPLETE=source_fish archiver > ~/.config/fish/completions/archiver.fish
```

**Colours** are used on a terminal only. `NO_COLOR=1` switches them off.

**Other libraries** warn of each attempt that fails, so they are heard only with `--verbose`, which also shows the
traceback of an error. What matters to you is in the one message that the archiver ends with.
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="archiver", **root.context_settings)
    return "\n".join((_INTRODUCTION, *_described(root, context))).strip() + "\n"


def _described(command: Any, context: typer.Context) -> Iterator[str]:
    """The lines of a command, then those of its sub-commands."""
    group = getattr(command, "commands", {})
    if context.parent is not None:
        yield f"## `{context.command_path}`\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if group:
        yield "| command | |\n|---|---|"
        for name, each in group.items():
            path = f"{context.command_path} {name}"
            link = f"[`{name}`](#{path.replace(' ', '-')})"
            yield f"| {link} | {_cell(each.get_short_help_str(_UNCUT))} |"
        yield ""
    records = [each.get_help_record(context) for each in command.get_params(context)]
    yield "| argument or option | |\n|---|---|"
    yield from (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in filter(None, records))
    yield ""
    for name, each in group.items():
        yield from _described(each, typer.Context(each, info_name=name, parent=context, **each.context_settings))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
