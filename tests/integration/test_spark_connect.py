"""A job by Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from archiver.local.java import find_java
from archiver.local.ports import accepts
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

PORT = 15_102
READY_S = 120.0
OPTIONS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": str(PORT),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    confs = [part for name, value in OPTIONS.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java().home),
    }
    with (tmp_path / "connect.log").open("wb") as log:
        process = subprocess.Popen(
            [submit, "--master", "local[2]", *confs, "--class", server],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=tmp_path,
        )
    try:
        eventually(
            lambda: accepts(PORT) or process.poll() is not None, "Spark Connect accepts", seconds=READY_S, every=0.5
        )
        assert process.poll() is None, (tmp_path / "connect.log").read_text()[-2_000:]
        yield f"sc://127.0.0.1:{PORT}"
    finally:
        process.terminate()
        process.wait()


def test_the_job_runs_by_spark_connect(stack: Stack, connect: str) -> None:
    topic = stack.topic(2)
    stack.produce(topic, *({"value": f"{number}", "partition": number % 2} for number in range(1_000)))
    config = stack.config({topic: {}})
    text = config.read_text().replace('"master" = "local[2]"', f'"remote" = "{connect}"')
    config.write_text(text)
    assert connect in text

    # In a process of its own: PySpark can't have a classic session and a Connect session in one.
    command = [Path(sys.executable).with_name("archiver"), "archive", "--config", config, "--once"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)
