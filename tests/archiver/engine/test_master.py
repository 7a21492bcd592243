from __future__ import annotations

import socket

import pytest

from archiver.engine.master import check_master, require_answer
from archiver.engine.session import start_session
from archiver.errors import ConfigError, EngineError


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[*, 4]",
        "local-cluster[2,1,1024]",
        "spark://a:7077",
        "spark://a:7077,b:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://x:6443",
    ],
)
def test_masters_that_spark_takes(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "locl[2]", "local[0]", "local[x]", "local[2", "spark://a", "spark://a:7077/", "mesos://a:5050"]
)
def test_a_word_that_is_no_master_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(ConfigError, match="This is no Spark master") as raised:
        check_master(master)
    assert raised.value.context == {"key": "spark.master", "master": master}


def test_a_connect_server_is_no_master() -> None:
    with pytest.raises(ConfigError, match="set `remote` instead"):
        check_master("sc://a:15002")


@pytest.fixture
def silent_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{}", "sc://127.0.0.1:{}", "sc://127.0.0.1:{}/;user_id=a"])
def test_nobody_at_the_address_is_an_error_at_once(form: str, silent_port: int) -> None:
    position = form.format(silent_port)
    with pytest.raises(EngineError, match="Spark doesn't answer") as raised:
        require_answer(position)
    assert raised.value.context["spark"] == position
    assert f"127.0.0.1:{silent_port}" in raised.value.context["addresses"]


def test_one_master_that_answers_is_enough(silent_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_answer(f"spark://127.0.0.1:{silent_port},127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("place", ["local[2]", "yarn", "k8s://https://127.0.0.1:1"])
def test_other_places_are_left_to_spark(place: str) -> None:
    require_answer(place)


@pytest.mark.parametrize("key", ["master", "remote"])
def test_a_session_asks_before_java_starts(key: str, silent_port: int) -> None:
    scheme = {"master": "spark", "remote": "sc"}[key]
    with pytest.raises(EngineError, match=f"`{key}` in"):
        start_session({key: f"{scheme}://127.0.0.1:{silent_port}"})
