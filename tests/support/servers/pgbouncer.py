"""PgBouncer, if it is installed (www.pgbouncer.org/features.html)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.servers.free_ports import free_port
from tests.support.timing.eventually import eventually

_START_SECONDS = 20.0


def pgbouncer_path() -> str:
    path = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if path is None:
        pytest.skip("PgBouncer is not installed (apt-get install pgbouncer)")
    return path


@contextmanager
def pgbouncer(
    dsn: str, folder: Path, *, pool_mode: str, pool_size: int, reset_query: str = "DISCARD ALL"
) -> Iterator[str]:
    path, port, target = pgbouncer_path(), free_port(), conninfo_to_dict(dsn)
    server = " ".join(f"{key}={target[key]}" for key in ("host", "port", "user", "password") if target.get(key))
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": pool_mode,
        "default_pool_size": pool_size,
        "server_reset_query": reset_query,
        **({"user": "nobody"} if os.getuid() == 0 else {}),
    }
    lines = ["[databases]", f"* = {server}", "[pgbouncer]", *(f"{key} = {value}" for key, value in settings.items())]
    config = folder / f"pgbouncer-{port}.ini"
    config.write_text("\n".join(lines) + "\n")
    with subprocess.Popen([path, "-q", str(config)], stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield make_conninfo(dsn, host="127.0.0.1", port=port)
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    def accepts() -> bool:
        socket.create_connection(("127.0.0.1", port)).close()
        return True

    eventually(accepts, f"PgBouncer on port {port}", seconds=_START_SECONDS, despite=(OSError,))
