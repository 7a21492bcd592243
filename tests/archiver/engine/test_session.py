from __future__ import annotations

import os
import subprocess
import sys

import pytest

from archiver.engine.classic_settings import classic_settings, prepare_environment, runs_here
from archiver.engine.java import filtered_children
from archiver.engine.session import reason_of, start_session
from archiver.errors import ConfigError


def test_options_given_win_over_the_defaults():
    settings = classic_settings({"master": "local[3]", "spark.ui.enabled": "true"})
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.host"] == "127.0.0.1"


def test_a_cluster_keeps_its_own_addresses():
    settings = classic_settings({"master": "spark://head:7077"})
    assert "spark.driver.host" not in settings
    environment: dict[str, str] = {}
    prepare_environment(settings, environment)
    assert "PYSPARK_PYTHON" not in environment


@pytest.mark.parametrize("master", ["local[1]", "spark://head:7077"])
def test_java_options_of_the_operator_are_kept_and_win(master: str):
    given = {"master": master, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
    options = classic_settings(given)["spark.driver.extraJavaOptions"].split()
    levels = [option for option in options if option.startswith("-XX:TieredStopAtLevel=")]
    assert levels[-1] == "-XX:TieredStopAtLevel=4"
    assert (len(levels) == 2) == master.startswith("local")
    assert options[-1].startswith("-Dlog4j2.configurationFile=")


def test_a_collector_of_the_operator_is_the_only_one():
    def collectors(options: str) -> list[str]:
        settings = classic_settings({"master": "local[1]", "spark.driver.extraJavaOptions": options})
        return [item for item in settings["spark.driver.extraJavaOptions"].split() if item.endswith("GC")]

    assert collectors("-Dx=y") == ["-XX:+UseSerialGC"]
    assert collectors("-XX:+UseZGC -Dx=y") == ["-XX:+UseZGC"]


def test_only_workers_on_this_machine_are_forked_from_our_daemon():
    local = classic_settings({"master": "local[2]"}, ("json", "csv"))
    assert local["spark.python.daemon.module"] == "archiver.engine.worker_daemon"
    assert local["spark.executorEnv.ARCHIVER_PRELOADED"] == "json,csv"
    assert local["spark.executorEnv.ARCHIVER_HEAPS"] == "1"
    assert classic_settings({"master": "local[2]"}, heaps=3)["spark.executorEnv.ARCHIVER_HEAPS"] == "3"
    elsewhere = classic_settings({"master": "spark://head:7077"}, ("json",), 3)
    assert "spark.python.daemon.module" not in elsewhere
    assert "spark.executorEnv.ARCHIVER_HEAPS" not in elsewhere


def test_local_workers_run_this_interpreter_by_default():
    environment = {"SPARK_LOCAL_IP": "10.0.0.1"}
    prepare_environment(classic_settings({"master": "local[1]"}), environment)
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "10.0.0.1"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"executor.memory": "4g"}, "executor.memory"), ({"master": "local", "remote": "sc://x"}, "either `master`")],
)
def test_options_that_are_not_sparks_are_refused(options: dict[str, str], message: str):
    with pytest.raises(ConfigError, match=message):
        start_session(options)


@pytest.mark.parametrize("key", ["master", "remote", "spark.master"])
def test_under_spark_submit_the_configuration_names_no_place(key: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(ConfigError, match="spark-submit says where the job runs"):
        start_session({key: "local[2]"})


def test_a_childs_noise_is_dropped_and_the_rest_passes():
    program = """
import subprocess, sys
from archiver.engine.java import filtered_children
child = "import sys; print('Setting default log level to WARN', file=sys.stderr); print('trouble', file=sys.stderr)"
with filtered_children():
    started = subprocess.Popen([sys.executable, "-c", child])
started.wait()
import threading
for thread in threading.enumerate():
    if thread.name == "spark-stderr":
        thread.join(10)
print("our own", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "trouble\nour own\n"


def test_child_output_before_failed_start_is_in_the_error():
    program = """
import subprocess, sys, time
from archiver.engine.java import filtered_children
child = r"import sys, time; print('bad master', file=sys.stderr); print('\\tat a.B.c(B.java:1)', file=sys.stderr);" \
    "sys.stderr.flush(); time.sleep(3); print('later', file=sys.stderr)"
try:
    with filtered_children():
        started = subprocess.Popen([sys.executable, "-c", child])
        time.sleep(1)
        raise RuntimeError("no start")
except RuntimeError as error:
    notes = error.__notes__
started.wait()
time.sleep(0.2)
print(notes, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "['bad master']\n"


def test_the_cause_of_a_java_error_is_its_own_line():
    text = "An error occurred while calling None.x.\n: java.net.BindException: no\n\tat a.B.c(B.java:1)\n"
    assert reason_of(RuntimeError(text)) == "java.net.BindException: no"
    assert reason_of(RuntimeError("[A] short\nmore")) == "[A] short"
    assert reason_of(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize(
    ("options", "here"),
    [({}, True), ({"master": "local[2]"}, True), ({"master": "spark://h:1"}, False), ({"remote": "sc://h"}, False)],
)
def test_where_tasks_run(options: dict[str, str], here: bool):
    assert runs_here(options) is here


def test_our_own_standard_error_is_as_before():
    before = os.fstat(2)
    with filtered_children():
        pass
    after = os.fstat(2)
    assert (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)
