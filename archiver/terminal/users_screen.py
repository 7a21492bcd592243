"""The users of servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from archiver.access import ListedUser


def users_json(users: Sequence[ListedUser]) -> dict[str, Any]:
    return {
        "users": [
            {
                "name": user.name,
                "mechanisms": list(user.mechanisms),
                "iterations": user.iterations,
                "changed_at": user.changed_at.isoformat() if user.changed_at else None,
            }
            for user in users
        ]
    }


def users_screen(users: Sequence[ListedUser]) -> RenderableType:
    return Text("\n".join(map(_line, users)) or "there are no users")


def _line(user: ListedUser) -> str:
    since = f", since {user.changed_at.isoformat()[:19]}Z" if user.changed_at else ""
    return f"{user.name}: {', '.join(user.mechanisms)}, {user.iterations:,} iterations{since}"
