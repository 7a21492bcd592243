"""Checks `master` early, because Spark fails late."""

from __future__ import annotations

import re
import socket
from typing import Final

from archiver.errors import ConfigError, EngineError

CONNECT_SECONDS: Final = 5.0
_STANDALONE: Final = "spark://"
_CONNECT: Final = "sc://"
_CONNECT_PORT: Final = 15002
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:]+\]|[^\s/:,\[\]]+):\d{1,5}")
_FORMS: Final = (
    re.compile(r"local(\[\s*(\*|[1-9]\d*)\s*(,\s*[1-9]\d*\s*)?\])?"),
    re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"),
    re.compile(r"yarn"),
    re.compile(r"(spark|k8s)://\S+"),
)


def check_master(master: str) -> None:
    """Raises ConfigError if this is no form of a Spark master."""
    if any(form.fullmatch(master) for form in _FORMS) and all(map(_ADDRESS.fullmatch, _addresses(master))):
        return
    hint = " (for Spark Connect, set `remote` instead)" if master.startswith("sc://") else ""
    raise ConfigError(
        f"This is no Spark master: write local[2] or local[*] for this machine, spark://HOST:PORT, yarn, or"
        f" k8s://https://HOST:PORT{hint}",
        key="spark.master",
        master=master,
    )


def require_answer(place: str) -> None:
    """Raises EngineError if `place` has addresses and none accepts a connection."""
    reasons: dict[str, str] = {}
    for address in _connect_address(place) or _addresses(place):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reasons[address] = str(error)
        else:
            return
    if reasons:
        raise EngineError(
            f"Spark doesn't answer. Is it running, and is `{'remote' if _is_remote(place) else 'master'}` in [spark]"
            " right?",
            spark=place,
            addresses=reasons,
        )


def _is_remote(place: str) -> bool:
    return place.startswith(_CONNECT)


def _connect_address(place: str) -> tuple[str, ...]:
    if not _is_remote(place):
        return ()
    address = place.removeprefix(_CONNECT).partition("/")[0]
    return (address if _ADDRESS.fullmatch(address) else f"{address}:{_CONNECT_PORT}",)


def _addresses(master: str) -> tuple[str, ...]:
    return tuple(master.removeprefix(_STANDALONE).split(",")) if master.startswith(_STANDALONE) else ()
