"""An API as this server answers it."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.serve.kafka.guards import Guard, Handler
from archiver.wire.api_keys import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API: its first and last version, its handler, and the guard that authorizes requests.

    - `waits` for other clients, so the request's memory is released first; `before_login`: allowed before
      authentication; `is_timely`: never throttled
    - `of_groups` goes to the group's coordinator; `of_members` needs only members, `of_offsets` only offsets; `is_slow`
      waits for the registry; `is_kept` finishes even if client or node goes; `ends_groups` needs members or offsets
    - `of_readers` is loaded ahead, for a client's first record
    """

    key: ApiKey
    least: int
    most: int
    handler: Handler
    guard: Guard
    waits: bool = False
    before_login: bool = False
    is_timely: bool = False
    of_groups: bool = False
    of_members: bool = False
    of_offsets: bool = False
    is_slow: bool = False
    is_kept: bool = False
    ends_groups: bool = False
    of_readers: bool = False

    @property
    def name(self) -> str:
        return self.key.title

    def knows(self, version: int) -> bool:
        return self.least <= version <= self.most
