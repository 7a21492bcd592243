"""Completion in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.terminal.pseudo_terminal import run, run_elsewhere

COMMAND = str(Path(sys.executable).with_name("archiver"))
WORDS = {
    "bash": {"COMP_WORDS": "archiver re", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "archiver re"},
    "fish": {"_TYPER_COMPLETE_ARGS": "archiver re", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", WORDS)
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    done = run_elsewhere([COMMAND], {"_ARCHIVER_COMPLETE": f"source_{shell}"})
    assert done.returncode == 0
    assert f"_ARCHIVER_COMPLETE=complete_{shell}" in done.stdout


@pytest.mark.parametrize("shell", WORDS)
def test_the_script_is_told_the_commands(shell: str) -> None:
    done = run_elsewhere([COMMAND], {"_ARCHIVER_COMPLETE": f"complete_{shell}", **WORDS[shell]})
    commands = {name for name in ("replay", "reprocess", "reconcile", "refill", "registry") if name in done.stdout}
    assert commands == {"replay", "reprocess", "reconcile", "refill", "registry"}
    assert "archive " not in done.stdout


def interactive(shell: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    script = run_elsewhere([COMMAND], {"_ARCHIVER_COMPLETE": f"source_{shell}"}).stdout
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "PATH": path}
    match shell:
        case "bash":
            (folder / "bashrc").write_text(f"PS1='ready> '\n{script}\n")
            return ["bash", "--noprofile", "--rcfile", str(folder / "bashrc"), "-i"], home
        case "zsh":
            (folder / ".zshrc").write_text(f"PS1='ready> '\nautoload -Uz compinit; compinit -u\n{script}\n")
            return ["zsh", "--no-globalrcs", "-i"], home | {"ZDOTDIR": str(folder)}
        case _:
            (folder / "fish").mkdir()
            prompt = "function fish_greeting; end\nfunction fish_prompt; echo -n 'ready> '; end\n"
            (folder / "fish" / "config.fish").write_text(f"{prompt}{script}\n")
            return ["setsid", "--ctty", "--wait", "fish", "-i"], home  # it wants a terminal of its own


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(each, marks=pytest.mark.skipif(shutil.which(each) is None, reason=f"{each} is not installed"))
        for each in WORDS
    ],
)
def test_the_shell_completes(shell: str, tmp_path: Path) -> None:
    command, environment = interactive(shell, tmp_path)
    pressed: list[str] = []

    def press(_: int, keys: int, shown: str) -> None:
        if "ready>" in shown and not pressed:
            os.write(keys, b"archiver orp\t")
            pressed.append("tab")
        if "archiver orphans" in shown and len(pressed) == 1:
            os.write(keys, b"\x15exit\r")
            pressed.append("exit")

    seen = run(command, columns=80, environment=environment, on_frame=press, timeout=30)
    assert any("ready> archiver orphans" in frame for frame in seen.frames)
