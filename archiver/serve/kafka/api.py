"""An API of Kafka as this server answers it: its versions, who answers, and what its requests need."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.serve.kafka.guards import Guard, Handler
from archiver.wire.api_keys import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API with the first and last version that is answered, and the guard that says who may ask for what.

    What its requests need, by the parts of the server that ask for it:

    - connections: `waits` for other clients, so its request gives its memory back first; `before_login` may be asked by
      clients that haven't shown who they are
    - quotas: `is_timely` requests are answered at once whatever their client owes
    - groups: only those with `of_groups` go to the group's coordinator. `of_members` needs the members alone,
      `of_offsets` the offsets alone; `is_slow` waits for the registry; what it did `is_kept` in the registry, whatever
      becomes of the node; `ends_groups` can't be done to a group without members and offsets
    - the start: `of_readers` is needed before a client's first record, so it is loaded ahead
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
        """The API's name."""
        return self.key.title

    def knows(self, version: int) -> bool:
        """Return whether a version is answered."""
        return self.least <= version <= self.most
