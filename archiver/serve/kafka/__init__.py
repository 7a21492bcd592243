"""The Kafka protocol over archived topics, for unmodified clients (docs/serve.md).

- bytes: `request_reader`, `messages` (answers of any version), `frames`, `fetch_response` (packed by hand)
- answers: `cluster`, `list_offsets`, `fetch` with `fetch_sessions`, `pace` and `pauses`, `configs`, `refusals`;
  `group_requests` and `offset_requests` for groups, `coordination` before them, `group_upkeep` beside them
- `apis`: the versions of each API, and what answers them
- `connection` and `server` speak with clients, `endpoint` assembles a server from a configuration, `running` serves
  until a signal comes

Messages are kio's classes. `messages` leaves out the fields that a version lacks, so handlers look at versions only if
their meaning differs.
"""

__all__ = ["endpoint", "running"]
