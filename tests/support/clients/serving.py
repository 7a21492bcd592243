"""`archiver serve kafka` as users start it, for tests of clients."""

from __future__ import annotations

from tests.support.servers.serve_command import serving

__all__ = ["serving"]
