"""Azurite, an emulator of Azure's blob store: 186 MB from npm once, 1 s to start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow.fs import AzureFileSystem

from archiver.local.ports import choose
from tests.support.servers.guarded import guarded
from tests.support.servers.programs import node, npm_package

VERSION = "3.34.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Every Azurite has this key; it is in Microsoft's documentation."""


@contextmanager
def azurite(scratch: Path, container: str) -> Iterator[str]:
    port = choose(["azurite"])["azurite"]
    authority = f"127.0.0.1:{port}"
    command = (
        node(),
        str(npm_package("azurite", VERSION) / "dist/src/blob/main.js"),
        "--blobHost=127.0.0.1",
        f"--blobPort={port}",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--silent",
    )
    with guarded(command, probe=f"http://{authority}/", log=scratch / "azurite.log", ready=(400, 403)):
        AzureFileSystem(
            account_name=ACCOUNT,
            account_key=KEY,
            blob_storage_authority=authority,
            dfs_storage_authority=authority,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        ).create_dir(container)
        yield authority
