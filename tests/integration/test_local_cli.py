"""`archiver local`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.integration

PROGRAM = "from archiver.cli.local import local_app; local_app()"


def local(*words: str) -> subprocess.CompletedProcess[str]:
    form = [] if "--json" in words else ["--no-json"]
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *words, *form]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def test_up_status_down(tmp_path: Path):
    where = ("--dir", str(tmp_path / "my stack"))
    assert local("status", *where).returncode == 1
    try:
        up = local("up", *where)
        assert up.returncode == 0, up.stderr
        assert "The stack is up." in up.stdout
        assert "Apache Kafka: ready in" in up.stderr
        again = local("up", *where, "--json")
        assert json.loads(again.stdout)["started"] == []

        status = local("status", *where, "--json")
        document = json.loads(status.stdout)
        assert status.returncode == 0
        assert document["ready"]
        assert document["parts"].keys() == {"kafka", "seaweedfs", "postgres"}
        assert document["endpoints"].keys() >= {"kafka", "catalog", "warehouse", "s3", "bucket", "postgres", "config"}
        assert "secret_key" not in document["endpoints"]
        secret = json.loads(local("status", *where, "--json", "--secrets").stdout)["endpoints"]["secret_key"]
        assert secret not in status.stdout
        for part in document["parts"].values():
            assert part["health"] == "ready"
            assert psutil.Process(part["pid"]).is_running()
            assert part["version"]
            assert Path(part["log"]).exists()
    finally:
        down = local("down", *where, "--json")
    assert set(json.loads(down.stdout)["stopped"]) == {"kafka", "seaweedfs", "postgres"}
    stopped = local("status", *where)
    assert stopped.returncode == 1
    assert stopped.stdout.count("stopped") == 3


@pytest.mark.usefixtures("stack")
def test_fetch_gets_all_jars_and_says_where_they_are():
    fetched = local("fetch", "--json")
    assert fetched.returncode == 0, fetched.stderr
    folders = [Path(folder) for folder in json.loads(fetched.stdout)["folders"]]
    names = {jar.name for folder in folders for jar in folder.glob("*.jar")}
    assert {name.partition("-4")[0] for name in names} >= {"kafka-clients", "iceberg-spark-runtime"}
    assert "All jars are there." in local("fetch").stdout
