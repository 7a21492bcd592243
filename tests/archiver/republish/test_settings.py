"""Rates, and options of the destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.cli.replay_options import topic_settings
from archiver.errors import ConfigError
from archiver.republish.client_options import destination_options
from archiver.republish.rate import Pace, Rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        (None, Rate()),
        ("5000", Rate(records=5000)),
        (" 5000/s ", Rate(records=5000)),
        ("10MiB", Rate(bytes=10 << 20)),
        ("1kb/s", Rate(bytes=1000)),
    ],
)
def test_rates(text: str | None, rate: Rate) -> None:
    assert Rate.parse(text) == rate


@pytest.mark.parametrize("text", ["", "0", "-5", "fast", "5 apples", "0.1B"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ConfigError, match="--rate"):
        Rate.parse(text)


def test_a_pace_makes_up_for_no_idle_time() -> None:
    clock = [0.0]
    pace = Pace(Rate(records=100), now=lambda: clock[0])
    assert pace.pause_after(records=50, size=9) == pytest.approx(0.5)
    clock[0] = 10.0
    assert pace.pause_after(records=100, size=9) == pytest.approx(0.75)
    assert Pace(Rate()).pause_after(records=10**9, size=10**12) == 0
    assert Pace(Rate(bytes=100), now=lambda: 0.0).pause_after(records=1, size=300) == pytest.approx(3)


def test_credentials_of_one_cluster_never_go_to_another(tmp_path: Path) -> None:
    own = {"bootstrap.servers": "a:1", "sasl.password": "secret"}
    assert destination_options(own, bootstrap=None, file=None) == own
    assert destination_options(own, bootstrap="b:2", file=None) == {"bootstrap.servers": "b:2"}
    file = tmp_path / "there.properties"
    file.write_text("# ours\n\nbootstrap.servers = c:3\nsasl.password=pass=word\n")
    assert destination_options(own, bootstrap=None, file=file) == {
        "bootstrap.servers": "c:3",
        "sasl.password": "pass=word",
    }
    assert destination_options(own, bootstrap="b:2", file=file)["bootstrap.servers"] == "b:2"


@pytest.mark.parametrize(("text", "why"), [("sasl.password=x", "which cluster"), ("a=1\nnonsense", "name=value")])
def test_a_file_of_options_that_says_too_little(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "there.properties"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why) as error:
        destination_options({}, bootstrap=None, file=file)
    assert error.value.context["file"] == str(file)
    with pytest.raises(ConfigError, match="can't be read"):
        destination_options({}, bootstrap=None, file=tmp_path / "absent")


def test_settings_of_a_topic() -> None:
    assert topic_settings(["a=1", " b = x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(ConfigError, match="--topic-setting"):
        topic_settings(["a"])
