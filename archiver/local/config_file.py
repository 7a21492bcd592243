"""Writes `D/archiver.toml` for a new stack."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from archiver.local.endpoints import Endpoints
from archiver.local.ports import HOST
from archiver.local.state import write_private

FILE_NAME = "archiver.toml"
SPOOL_SIZE = "4GiB"


def render(endpoints: Endpoints) -> str:
    sections: dict[str, Mapping[str, str]] = {
        "kafka": {"bootstrap.servers": endpoints.bootstrap_servers},
        "catalog": endpoints.catalog_properties,
        "registry": {"dsn": endpoints.postgres_dsn},
        "spark": {"master": "local[2]"},
        "archive": {
            "spool": str(endpoints.directory / "spool"),
            "spool_size": SPOOL_SIZE,
            "journal": f"s3://{endpoints.bucket}/_archiver",
        },
    }
    parts = ["# Written by `archiver local up`. Add [topics.NAME] sections; they are kept.\n"]
    for name, values in sections.items():
        parts.append(f"\n[{name}]\n")
        parts.extend(f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    return "".join(parts)


def refresh(endpoints: Endpoints, *, known_digest: str, moved: Mapping[int, int]) -> str:
    """Return the digest; "" if the file changed since `known_digest`: then only the ports in `moved` are replaced."""
    path = endpoints.config_path
    current = _read(path)
    if current is None or digest(current) == known_digest:
        text = render(endpoints)
        remembered = digest(text)
    else:
        text = _with_ports(current, moved)
        remembered = ""
    if text != current:
        write_private(path, text)
    return remembered


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _with_ports(text: str, moved: Mapping[int, int]) -> str:
    def replace(match: re.Match[str]) -> str:
        port = int(match[1])
        return f"{HOST}:{moved.get(port, port)}"

    return re.sub(rf"{re.escape(HOST)}:(\d+)", replace, text)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
