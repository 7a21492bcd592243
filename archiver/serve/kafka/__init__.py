"""The Kafka protocol over archived topics, for clients that know nothing of it (docs/serve.md).

- bytes: `request_reader`, `messages` (answers of any version), `frames`, `fetch_response` (packed by hand)
- answers, one module for each trade: `versions`, `cluster`, `list_offsets`, `fetch` with `fetch_sessions`, `pace`
  and `pauses`, `configs`, `refusals`; `group_requests` and `offset_requests` for groups, `coordination` before them,
  `group_upkeep` beside them
- `apis` says which versions of which API are answered, and by what
- `connection` and `server` speak with clients, `endpoint` puts it all together for a configuration, and `running`
  serves until a signal comes

Messages are kio's classes. What a version of a message lacks is left out in `messages`, so a handler never asks for
versions, unless they differ in meaning.
"""

__all__ = ["endpoint", "running"]
