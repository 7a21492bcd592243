"""`spark-submit` on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from archiver.local.java import find_java
from archiver.local.ports import accepts
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
PORT = 15_177
READY_S = 120.0
ENVIRONMENT = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(find_java().home)}
RECORDS = 4_000


@contextmanager
def daemon(name: str, folder: Path, *arguments: str) -> Iterator[Path]:
    log = folder / f"{name}.log"
    command = [SPARK / "bin" / "spark-class", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=out, stderr=out, cwd=folder)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


def wait_for(log: Path, text: str) -> None:
    eventually(
        lambda: text in log.read_text(), lambda: f"{text!r} in {log.read_text()[-2_000:]}", seconds=READY_S, every=0.2
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as daemons:
        master = "org.apache.spark.deploy.master.Master"
        where = ("--host", "127.0.0.1", "--port", str(PORT), "--webui-port", "0")
        log = daemons.enter_context(daemon("master", tmp_path, master, *where))
        wait_for(log, "I have been elected leader")
        assert accepts(PORT)
        for number in range(2):
            worker = "org.apache.spark.deploy.worker.Worker"
            size = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0")
            work = ("--work-dir", str(tmp_path / f"work-{number}"), f"spark://127.0.0.1:{PORT}")
            log = daemons.enter_context(daemon(f"worker-{number}", tmp_path, worker, *size, *work))
            wait_for(log, "Successfully registered with master")
        yield tmp_path


def submit(config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(SPARK / "bin" / "spark-submit", "--master", f"spark://127.0.0.1:{PORT}"),
        *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.executor.memory=512m", "--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *options,
        *(ROOT / "scripts" / "archiver_submit.py", "archive", "--config", config, "--once"),
    ]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=400, check=False)


def archived_by_both(stack: Stack, cluster: Path, *options: str) -> None:
    topic = stack.topic(4)
    stack.produce(topic, *({"value": f"{number}", "partition": number % 4} for number in range(RECORDS)))
    config = stack.config({topic: {}})
    config.write_text(config.read_text().replace('"master" = "local[2]"', ""))

    done = submit(config, *options)

    assert done.returncode == 0, done.stdout + done.stderr
    for number in range(2):
        assert list((cluster / f"work-{number}").glob("app-*/*")), f"worker {number} ran no executor"
    assert from_archive(config, topic, 4) == from_kafka(stack, topic, 4)


def test_two_workers_archive_what_spark_submit_hands_over(stack: Stack, cluster: Path) -> None:
    archived_by_both(stack, cluster, "--conf", f"spark.pyspark.python={sys.executable}")


@pytest.mark.slow
def test_workers_need_nothing_but_the_packed_environment(stack: Stack, cluster: Path) -> None:
    subprocess.run([ROOT / "scripts" / "package"], check=True, timeout=900)
    elsewhere = f"spark.executorEnv.PEX_ROOT={cluster / 'pex'}"
    packed = ("--files", str(ROOT / "dist" / "archiver.pex"), "--conf", "spark.pyspark.python=./archiver.pex")
    archived_by_both(stack, cluster, *packed, "--conf", elsewhere)
