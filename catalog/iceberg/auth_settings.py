"""pyiceberg's settings `auth`, which renew tokens, and `ssl`: tables in `[catalog]` with dotted names.

See `pyiceberg.catalog.rest.auth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

AUTH: Final = "auth"
_PREFIX: Final = "auth."
_SSL: Final = "ssl"
CERTIFICATE_FILES: Final = (f"{_SSL}.cabundle", f"{_SSL}.client.cert", f"{_SSL}.client.key")
"""Settings that are paths. A directory of authorities, hashed by OpenSSL, is a `cabundle` too."""
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "noop": (),
    "basic": ("username", "password"),
    "oauth2": ("client_id", "client_secret", "token_url"),
    "google": (),
    "entra": (),
    "custom": (),
}
_BESIDE: Final = ("token", "credential", "oauth2-server-uri", "scope")
_NUMBERS: Final = ("refresh_margin", "expires_in")
_LISTS: Final = ("scopes",)


class AuthSettingError(ValueError): ...


def with_auth(properties: Mapping[str, str]) -> dict[str, Any]:
    """Lists are split at spaces or commas."""
    nested = (_PREFIX, f"{_SSL}.")
    flat: dict[str, Any] = {name: value for name, value in properties.items() if not name.startswith(nested)}
    table: dict[str, Any] = {}
    for name, value in properties.items():
        if not name.startswith(_PREFIX):
            continue
        kind, _, setting = name.removeprefix(_PREFIX).partition(".")
        if setting:
            table.setdefault(kind, {})[setting.replace("-", "_")] = _typed(setting.replace("-", "_"), value)
        else:
            table[kind] = value
    return flat | ({AUTH: table} if table else {}) | _with_certificates(properties)


def _with_certificates(properties: Mapping[str, str]) -> dict[str, Any]:
    client = {name: properties[key] for name in ("cert", "key") if (key := f"{_SSL}.client.{name}") in properties}
    table: dict[str, Any] = {"client": client} if client else {}
    if (authorities := properties.get(f"{_SSL}.cabundle")) is not None:
        table["cabundle"] = authorities
    return {_SSL: table} if table else {}


def check_certificates(properties: Mapping[str, str], prefix: str = "") -> None:
    """Raise AuthSettingError for a file of `ssl` that can't be read, or a key without its certificate."""
    for name in (name for name in CERTIFICATE_FILES if name in properties):
        path = Path(properties[name])
        try:
            if name == f"{_SSL}.cabundle" and path.is_dir():
                next(path.iterdir(), None)
            else:
                path.open("rb").close()
        except FileNotFoundError:
            raise AuthSettingError(f"{prefix}{name}: there is no file {path}") from None
        except OSError as error:
            raise AuthSettingError(f"{prefix}{name}: {path} can't be read: {error.strerror}") from error
    if f"{_SSL}.client.key" in properties and f"{_SSL}.client.cert" not in properties:
        raise AuthSettingError(f"{prefix}{_SSL}.client.key needs {_SSL}.client.cert")


def check_auth(properties: Mapping[str, str], prefix: str = "") -> None:
    """Raise AuthSettingError if the client can't be made with these settings."""
    try:
        auth = with_auth(properties).get(AUTH)
    except ValueError as error:
        raise AuthSettingError(f"{prefix}{error}") from None
    if auth is None:
        return
    kind = auth.get("type")
    if kind not in _NEEDED:
        given = "is missing" if kind is None else f"can't be {kind!r}"
        raise AuthSettingError(f"{prefix}auth.type {given}: write {', '.join(_NEEDED)}")
    if ("impl" in auth) != (kind == "custom"):
        raise AuthSettingError(f'{prefix}auth.impl (module.Class) goes with auth.type = "custom"')
    settings = auth.get(kind, {})
    if missing := [name for name in _NEEDED[kind] if name not in settings]:
        raise AuthSettingError(f"{prefix}auth.{kind}.{missing[0]} is missing")
    if unused := sorted(auth.keys() - {"type", "impl", kind}):
        raise AuthSettingError(f"{prefix}auth.{unused[0]} has no effect with auth.type = {kind!r}")
    if beside := [name for name in _BESIDE if name in properties]:
        raise AuthSettingError(f"{prefix}{beside[0]} has no effect with `auth`: leave one of the two out")


def _typed(name: str, value: str) -> Any:
    if name in _NUMBERS:
        if not value.isdecimal():
            raise AuthSettingError(f"{name} is a number of seconds, not {value!r}")
        return int(value)
    return value.replace(",", " ").split() if name in _LISTS else value
