"""First configurations load."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import load_config
from archiver.errors import AccessDenied, ConfigError
from archiver.setup.cluster_topics import TopicSize
from archiver.setup.first_config import TopicDraft, config_text
from archiver.setup.samples import Sampled
from archiver.setup.write_config import FirstConfig, sections_from

TOPIC_NAMES = st.text(alphabet="abcXYZ019._-", min_size=1, max_size=20)


def draft(name: str, *values: bytes | None, **more: object) -> TopicDraft:
    size = TopicSize(topic=name, partitions=3, offsets=1_234)
    return TopicDraft(size=size, keys=Sampled.of([]), values=Sampled.of(values), **more)  # type: ignore[arg-type]


def loaded(text: str, folder: Path) -> dict[str, object]:
    path = folder / "archiver.toml"
    path.write_text(text, encoding="utf-8")
    load_config(path, {})
    return dict(tomllib.loads(text).get("topics", {}))


def sections() -> dict[str, dict[str, object]]:
    return sections_from(None, "kafka:9092", ())


@given(names=st.lists(TOPIC_NAMES, unique=True, max_size=12))
def test_any_topics_make_a_configuration_that_loads(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    text = config_text(["head"], sections(), [draft(name, b"x") for name in names])
    config = loaded(text, tmp_path_factory.mktemp("config"))
    assert set(config) == {name for name in names if not name.startswith("_")}


def test_guesses_are_comments(tmp_path: Path) -> None:
    drafts = [
        draft("proto", b"\x08\x01"),
        draft("framed", b"\x00\x00\x00\x00\x07\x00\x08\x01"),
        draft("json", b"{}", b"{}", None),
        draft("single", b"\xc3\x01abcdefgh\x02"),
        draft("bytes", b"\xff\xfe\x00", b"\x08\x01", None),
        draft("denied", error=AccessDenied("The broker refuses\nto tell")),
    ]
    text = config_text([], sections(), drafts)
    assert loaded(text, tmp_path) == {"proto": {}, "framed": {}, "json": {}, "single": {}, "bytes": {}}
    assert "# proto: 3 partitions, at most 1,234 records" in text
    assert "# Of 1 value, 1 could be Protobuf." in text
    assert '# value = { format = "protobuf", message =' in text
    assert '# value = { format = "avro", schema = "FILE.avsc" }  # if it is Avro' in text.partition("[topics.bytes]")[2]
    assert '# value = { format = "avro", wire_format = "single_object", schema = "FILE.avsc" }' in text
    assert '# value = { format = "json", schema = "FILE.schema.json" }' in text.partition("[topics.json]")[2]
    assert "# Of 1 value, 1 begins like the envelope of a schema registry." in text
    assert "# Of 3 values, 2 look like JSON, 1 is null." in text
    assert "# It couldn't be read: AccessDenied: The broker refuses to tell\n" in text
    assert "# [topics.denied]" in text


def test_a_format_that_a_registry_vouches_for_is_in_force(tmp_path: Path) -> None:
    with_registry = sections_from(None, "kafka:9092", ["schema_registry.url=http://registry:8081"])
    formats = {"value": '{ format = "protobuf", wire_format = "confluent" }'}
    text = config_text([], with_registry, [draft("orders", b"\x00\x00\x00\x00\x07\x00\x08\x01", formats=formats)])
    assert loaded(text, tmp_path)["orders"] == {"value": {"format": "protobuf", "wire_format": "confluent"}}


@pytest.mark.parametrize("asked", [True, False])
def test_protobuf_is_never_proposed_for_enveloped_values(tmp_path: Path, *, asked: bool) -> None:
    framed = replace(draft("orders", b"\x00\x00\x00\x00\x07\x02a"), asked_registry=asked)
    text = config_text([], sections(), [framed])
    assert "protobuf" not in text.partition("[topics.orders]")[2]
    expected = "archived as bytes" if asked else "set [schema_registry], and `archiver init` looks"
    assert expected in text


def test_servers_that_nobody_named_are_marked() -> None:
    text = config_text([], sections_from(None, "kafka:9092", ["catalog.uri=http://here:8181"]), [])
    assert text.count("CHANGE THIS") == 1
    assert 'dsn = "postgresql://archiver@localhost:5432/archiver"  # CHANGE THIS' in text
    assert 'uri = "http://here:8181"\n' in text


def test_settings_and_secrets() -> None:
    settings = sections_from(
        None,
        None,
        ["registry.dsn=env:DSN", "kafka.sasl.password=file:/run/p", "catalog.uri=http://c", "spark.spark.x=1"],
    )
    assert settings["registry"]["dsn"] == {"env": "DSN"}
    assert settings["kafka"] == {"sasl.password": {"file": "/run/p"}}
    assert settings["spark"] == {"spark.x": "1"}
    text = config_text([], settings, [])
    assert tomllib.loads(text)["registry"]["dsn"] == {"env": "DSN"}
    with pytest.raises(ConfigError, match="is SECTION"):
        sections_from(None, None, ["warehouse=lake"])


def test_another_configuration_is_taken_without_its_topics(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        '[kafka]\n"bootstrap.servers" = "a:1"\n[catalog]\nuri = "http://c"\ns3 = { region = "x" }\n[registry]\n'
        'dsn = { env = "HOME" }\n[archive]\nspool = "spool"\n[defaults]\nmax_lag = "1s"\n[topics.a]\n'
    )
    settings = sections_from(base, "b:2", ())
    assert settings.keys() == {"kafka", "catalog", "registry", "archive"}
    assert settings["archive"] == {"spool": str(tmp_path / "spool")}
    parsed = tomllib.loads(config_text([], settings, []))
    assert parsed["kafka"]["bootstrap.servers"] == "b:2"
    assert parsed["catalog"]["s3"] == {"region": "x"}


def test_paths_of_another_configuration_stay_its_own(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        '[kafka]\n"bootstrap.servers" = "a:1"\n[catalog]\nuri = "http://c"\nssl.cabundle = "ca.pem"\n'
        '"ssl.client.cert" = "/etc/a.pem"\nssl.client.key = { env = "KEY" }\n[audit]\nsigning_key = "sign.pem"\n'
        '[flight]\nwal = "wal"\n[serve.tls]\ncertificate = "s.crt"\nkey = { file = "s.key" }\n'
    )
    sections = sections_from(base, None, ())
    assert sections["catalog"]["ssl"] == {"cabundle": str(tmp_path / "ca.pem"), "client": {"key": {"env": "KEY"}}}
    assert sections["catalog"]["ssl.client.cert"] == "/etc/a.pem"
    assert sections["audit"] == {"signing_key": str(tmp_path / "sign.pem")}
    assert sections["flight"] == {"wal": str(tmp_path / "wal")}
    assert sections["serve"]["tls"] == {"certificate": str(tmp_path / "s.crt"), "key": {"file": "s.key"}}


def test_a_file_is_never_replaced_unless_told_so(tmp_path: Path) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        FirstConfig(path=path, sections=sections()).write()
    assert path.read_text() == "mine"


def test_without_brokers_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--bootstrap"):
        FirstConfig(path=tmp_path / "new.toml", sections=sections_from(None, None, ())).write()
    assert list(tmp_path.iterdir()) == []
