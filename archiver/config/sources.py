"""Raw settings from `archiver.toml` and the environment.

`ARCHIVER__SECTION__KEY` overrides a key; `ARCHIVER__KAFKA__BOOTSTRAP_SERVERS` is `bootstrap.servers`. `{ file = "…" }`
and `{ env = "…" }` are references.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archiver.errors import ConfigError
from catalog.iceberg.auth_settings import CERTIFICATE_FILES

PREFIX = "ARCHIVER__"
_BORROWED = ("kafka", "catalog", "spark")
_OWN_WITH_SECRETS = ("registry", "schema_registry", "traces", "archive")
_LINE = re.compile(r"at line (\d+)")
_SECTION = re.compile(r"\s*\[\s*topics\.(.+?)\s*\]\s*(#.*)?$")
_REFERENCES = ("kafka", "catalog", "serve", *_OWN_WITH_SECRETS)


def read_toml(path: Path) -> dict[str, Any]:
    """Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError("There is no configuration file here; name one with --config", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file cannot be read: {error}", file=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        message = f"The configuration file is not valid TOML: {error}{_unquoted(text, str(error))}"
        raise ConfigError(message, file=str(path)) from error


def _unquoted(text: str, complaint: str) -> str:
    """Shows no other line of the file."""
    line = _LINE.search(complaint)
    section = None if line is None else _SECTION.match(text.splitlines()[int(line[1]) - 1])
    if section is None or '"' in section[1]:
        return ""
    return f'. Quote the topic\'s name: [topics."{section[1]}"]'


def overlay_environment(tables: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Raises ConfigError."""
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for variable, value in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        section, _, rest = variable.removeprefix(PREFIX).partition("__")
        if not section or not rest:
            raise ConfigError("An override is named ARCHIVER__SECTION__KEY", variable=variable)
        table = merged.setdefault(section.lower(), {})
        if not isinstance(table, dict):
            raise ConfigError("The override's section is not a table in the file", variable=variable)
        _set(table, section.lower(), rest, value)
    return merged


def _set(table: dict[str, Any], section: str, rest: str, value: str) -> None:
    match section:
        case "kafka":
            table[rest.replace("__", ".").replace("_", ".").lower()] = value
        case "catalog":
            table[rest.replace("__", ".").replace("_", "-").lower()] = value
        case "spark":
            table[_spark_key(table, rest)] = value
        case _:
            *parents, leaf = rest.split("__")
            for parent in parents:
                table = table.setdefault(_existing(table, parent), {})
            table[_existing(table, leaf)] = value


def _spark_key(table: Mapping[str, Any], rest: str) -> str:
    """As in the file, else in the variable."""
    spelling = rest.replace("__", ".")
    return next((key for key in table if key.lower() == spelling.lower()), spelling)


def _existing(table: Mapping[str, Any], name: str) -> str:
    return next((key for key in table if key.lower() == name.lower()), name.lower())


def flatten_borrowed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys, text values, resolved references. Raises ConfigError."""
    flat = dict(tables)
    for section in _BORROWED:
        if isinstance(flat.get(section), dict):
            flat[section] = dict(_options(flat[section], section, ""))
    for section in _OWN_WITH_SECRETS:
        if isinstance(keys := flat.get(section), dict):
            flat[section] = {key: _resolve(value, section, key) for key, value in keys.items()}
    match flat.get("serve"):
        case {"tls": dict(tls), **rest}:
            flat["serve"] = {
                **rest,
                "tls": {key: _resolve(setting, "serve", f"tls.{key}") for key, setting in tls.items()},
            }
    return flat


def with_anchored_certificates(tables: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    match tables.get("catalog"):
        case dict(catalog):
            paths = {name: str(folder / catalog[name]) for name in CERTIFICATE_FILES if catalog.get(name)}
            return {**tables, "catalog": {**catalog, **paths}}
    return tables


def _options(table: Mapping[str, Any], section: str, prefix: str) -> list[tuple[str, str]]:
    values: list[tuple[str, str]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        resolved = _resolve(value, section, name)
        if isinstance(resolved, dict):
            values += _options(resolved, section, f"{name}.")
        elif isinstance(resolved, bool):
            values.append((name, str(resolved).lower()))
        elif isinstance(resolved, str | int | float):
            values.append((name, str(resolved)))
        else:
            raise ConfigError("An option is text, a number or true/false", key=f"{section}.{name}")
    return values


def _resolve(value: Any, section: str, key: str) -> Any:
    if section not in _REFERENCES or not isinstance(value, dict) or len(value) != 1:
        return value
    match value:
        case {"file": str(path)}:
            return _secret_file(Path(path), f"{section}.{key}")
        case {"env": str(variable)}:
            if variable not in os.environ:
                raise ConfigError(f"The environment variable {variable} is not set", key=f"{section}.{key}")
            return os.environ[variable]
        case _:
            return value


def _secret_file(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file that holds this value cannot be read: {error}", key=key, file=str(path)) from error
