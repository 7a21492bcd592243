"""`archiver users`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError, ConsentMissing

users_app = typer.Typer(help="Users of `archiver serve kafka`, with their passwords.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name. Access rules use User:NAME.")]
_PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", help="Read the password from this file; `-` is standard input. Default: ask."),
]
_Iterations = Annotated[
    int, typer.Option("--iterations", help="Hash iterations, 4096 to 250000. Clients compute as many.")
]
_DEFAULT_ITERATIONS = 16_384


@users_app.command()
def add(
    name: _Name,
    config: ConfigPath = DEFAULT_CONFIG,
    password_file: _PasswordFile = None,
    iterations: _Iterations = _DEFAULT_ITERATIONS,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Add a user. Only salted keys of the password are stored, for SCRAM-SHA-256, SCRAM-SHA-512 and PLAIN."""
    with reported(as_json=as_json):
        _set(name, config, password_file, iterations, is_new=True)
        _tell(name, "added", f"{name} is added; servers know it within seconds.", as_json=as_json)


@users_app.command()
def password(
    name: _Name,
    config: ConfigPath = DEFAULT_CONFIG,
    password_file: _PasswordFile = None,
    iterations: _Iterations = _DEFAULT_ITERATIONS,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Change a user's password. Open connections stay open."""
    with reported(as_json=as_json):
        _set(name, config, password_file, iterations, is_new=False)
        _tell(name, "changed", f"{name} has another password; servers know it within seconds.", as_json=as_json)


@users_app.command()
def remove(
    name: _Name,
    config: ConfigPath = DEFAULT_CONFIG,
    yes: Yes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Remove a user, after a question; without a terminal it needs --yes.

    Connections that are open stay open, for `serve.sasl.session_lifetime` at most.
    """
    from archiver.cli.consent import consent_to
    from archiver.config import load_config
    from archiver.upkeep.consent import RemovalQuestion

    with reported(as_json=as_json):
        dsn = load_config(config).registry.dsn
        if not consent_to("users remove", yes=yes)(RemovalQuestion(verb="remove", things=f"the user {name}")):
            raise ConsentMissing("the question was not answered with yes: nothing was removed", user=name)
        from archiver.access import UserAccounts

        UserAccounts(dsn).remove(name)
        _tell(name, "removed", f"{name} is removed.", as_json=as_json)


@users_app.command(name="list")
def listed(config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, _verbose: Verbose = False) -> None:
    """List the users with their mechanisms and the time of their last password change."""
    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.users_screen import users_json, users_screen

    with reported(as_json=as_json):
        dsn = load_config(config).registry.dsn
        from archiver.access import UserAccounts

        accounts = list(UserAccounts(dsn).every())
    print_answer("users", users_json(accounts), lambda: users_screen(accounts), as_json=as_json, soft_wrap=True)


def _set(name: str, config: Path, password_file: Path | None, iterations: int, *, is_new: bool) -> None:
    from archiver.config import load_config

    dsn = load_config(config).registry.dsn
    from archiver.access import UserAccounts

    secret = _password(password_file)
    UserAccounts(dsn).set_password(name, secret, is_new=is_new, iterations=iterations)


def _tell(name: str, done: str, text: str, *, as_json: bool) -> None:
    from archiver.terminal.answer import print_answer

    print_answer(f"user_{done}", {"user": name}, lambda: text, as_json=as_json, soft_wrap=True)


def _password(file: Path | None) -> str:
    """From a file, standard input or the terminal. Raises ConfigError."""
    if file is None:
        if not sys.stdin.isatty():
            raise ConfigError("nobody is here to type a password: give --password-file FILE, or - for standard input")
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the password's file can't be read: {error}", option="--password-file") from error
    return text.removesuffix("\n").removesuffix("\r")
