"""Options of the destination cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from archiver.errors import ConfigError

SERVERS: Final = "bootstrap.servers"


def destination_options(own: Mapping[str, str], *, bootstrap: str | None, file: Path | None) -> Mapping[str, str]:
    """Return options from `file`, with `bootstrap` for its addresses, else `own`.

    Another cluster never sees the credentials of `own`. Raises ConfigError if `file` has no addresses.
    """
    if bootstrap is None and file is None:
        return own
    options = {} if file is None else read_properties(file)
    if bootstrap is not None:
        options[SERVERS] = bootstrap
    if not options.get(SERVERS):
        raise ConfigError(f"the file doesn't say which cluster: add {SERVERS}, or give --bootstrap", file=str(file))
    return options


def read_properties(path: Path) -> dict[str, str]:
    """Read `name=value` lines. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The file of options can't be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError("The file of options isn't text", file=str(path)) from error
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        name, sign, value = plain.partition("=")
        if not sign or not name.strip():
            raise ConfigError("A line is no option: write name=value", file=str(path), line=number)
        options[name.strip()] = value.strip()
    return options
