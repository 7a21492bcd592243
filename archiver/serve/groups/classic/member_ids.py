"""Member ids with expiry and signature: the server stores none."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import struct
from itertools import count
from typing import Final
from uuid import UUID

_BODY: Final = struct.Struct(">II")
_SEAL_BYTES: Final = 8
_TEXT_SIZE: Final = 36
_SECRET_BYTES: Final = 32
_MOST: Final = 1 << 32


class MemberIds:
    """Ids have Kafka's form: client id, dash, UUID."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._numbers = count()

    def new(self, group_id: str, client_id: str, until: float) -> str:
        """Return an id valid until `until` (seconds of the groups' clock)."""
        body = _BODY.pack(math.ceil(until) % _MOST, next(self._numbers) % _MOST)
        return f"{client_id}-{UUID(bytes=body + self._seal(group_id, client_id, body))}"

    def holds(self, group_id: str, member_id: str, now: float) -> bool:
        client_id, text = member_id[: -_TEXT_SIZE - 1], member_id[-_TEXT_SIZE:]
        try:
            parsed = UUID(text)
        except ValueError:
            return False
        body, seal = parsed.bytes[: _BODY.size], parsed.bytes[_BODY.size :]
        is_own = hmac.compare_digest(seal, self._seal(group_id, client_id, body))
        if not is_own or member_id != f"{client_id}-{parsed}":
            return False
        until, _ = _BODY.unpack(body)
        return bool(now < until)

    def _seal(self, group_id: str, client_id: str, body: bytes) -> bytes:
        named = group_id.encode() + b"\0" + client_id.encode() + b"\0" + body
        return hashlib.blake2b(named, digest_size=_SEAL_BYTES, key=self._secret).digest()
