"""Errors name key, value and allowed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from archiver.config import load_config
from archiver.config.formats import AvroFormat, ProtobufFormat, RawFormat
from archiver.config.model import (
    ArchiveSection,
    ConfigFile,
    MetricsSection,
    RegistrySection,
    SchemaRegistrySection,
    ServeSection,
    TopicConfig,
    TopicSection,
    TracesSection,
)
from archiver.errors import ConfigError
from archiver.kafka.options import KafkaOptions, parse_kafka_options

MINIMAL = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[catalog]
uri = "http://127.0.0.1:8181"
[registry]
dsn = "postgresql://archiver:hunter2@127.0.0.1/archiver"
"""
THEIR_WORDS = (
    "Input", "input", "String should", "Value error", "discriminator", "dictionary", "valid ", "pydantic", "<class",
    "Field required", "Extra", "instance", " tag", "nable to", "convert", "literal", "[a-z", "tuple", "parse",
)  # fmt: skip
SECTIONS: Mapping[str, type[BaseModel]] = {
    "archive": ArchiveSection,
    "metrics": MetricsSection,
    "serve": ServeSection,
    "traces": TracesSection,
    "registry": RegistrySection,
    "schema_registry": SchemaRegistrySection,
    "defaults": TopicSection,
    'topics."orders.eu"': TopicSection,
}
FORMATS: Mapping[str, type[BaseModel]] = {"raw": RawFormat, "protobuf": ProtobufFormat, "avro": AvroFormat}
VALUES = (
    "7", "-7", "2.5", "nan", "inf", "true", '"word"', '""', '"1e999"', '"99999d"', '"99999TiB"', "[]", "[7]",
    '["word"]',     "{}", "{ a = 7 }", "2026-01-31", "2026-01-31T00:00:00", "2026-01-31T00:00:00Z", "12:00:00", "[[]]",
)  # fmt: skip
REQUIRED = {"[schema_registry]": 'url = "http://r"\n', "[traces]": 'endpoint = "http://t"\n'}
SECRETS = {"dsn", "password", "token", "headers", "url"}


def complaint(tmp_path: Path, text: str, base: str = MINIMAL) -> str | None:
    file = tmp_path / "archiver.toml"
    file.write_text(base + text)
    try:
        load_config(file, {})
    except ConfigError as error:
        return error.message
    return None


def in_our_words(text: str) -> str:
    plain = text.replace("`", "").replace("parse_error", "")
    assert [word for word in THEIR_WORDS if word in plain] == []
    return text


def keys() -> Iterator[tuple[str, str]]:
    yield from ((f"[{section}]", key) for section, model in SECTIONS.items() for key in model.model_fields)
    for name, model in FORMATS.items():
        section = f'[topics.orders.value]\nformat = "{name}"'
        yield from ((section, key) for key in model.model_fields if key != "format")
    yield "[topics.orders.value]", "format"
    yield from (("", section) for section in ConfigFile.model_fields)


def written(section: str, key: str, value: str) -> str:
    line = f"{key} = {value}\n"
    if section == "[registry]":
        return MINIMAL.partition("dsn")[0] + line
    if section:
        required = REQUIRED.get(section, "")
        return f"{MINIMAL}{section}\n{line}{'' if required.startswith(key) else required}"
    return line + "[".join(part for part in MINIMAL.split("[") if not part.startswith(f"{key}]"))


@pytest.mark.parametrize(("section", "key"), list(keys()))
def test_whatever_a_key_is_set_to_is_taken_or_told_in_our_words(tmp_path: Path, section: str, key: str) -> None:
    all_told = [(value, complaint(tmp_path, written(section, key, value), base="")) for value in VALUES]
    complaints = [(value, message) for value, message in all_told if message is not None]
    assert complaints
    for value, message in complaints:
        assert "not valid TOML" not in message
        assert key in message or section.startswith("[topics.orders.value]"), message
        in_our_words(message)
        if key in SECRETS:
            assert "word" not in message.replace("password", "") or value != '"word"', message


@pytest.mark.parametrize("key", [field.alias for field in KafkaOptions.model_fields.values()])
def test_any_kafka_option_value_is_accepted_or_explained(key: str) -> None:
    complaints = {
        value: kafka_complaint({key: value}) for value in ("", "-7", "2.5", "9" * 20, "true", "a:b", "hunter2")
    }
    for text in filter(None, complaints.values()):
        assert key in text
        in_our_words(text.replace("receive.message", ""))
    assert "hunter2" not in (complaints["hunter2"] or "") or not key.endswith(("password", "secret"))


def kafka_complaint(options: Mapping[str, str]) -> str | None:
    try:
        parse_kafka_options({"bootstrap.servers": "127.0.0.1:9092", **options})
    except ConfigError as error:
        return error.message
    return None


def test_the_file_is_named_too(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(MINIMAL + "[topics.orders]\nmax_lag = true")
    with pytest.raises(ConfigError) as caught:
        load_config(file, {})
    assert caught.value.context == {"file": str(file)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[topics.metrics.cpu]\npartition_by = "day"',
            (
                "topics.metrics.cpu: there is no such key. If 'metrics.cpu' is a topic, quote its name: "
                '[topics."metrics.cpu"]'
            ),
        ),
        (
            "[topics.a.b.c]",
            """topics.a.b: there is no such key. If 'a.b.c' is a topic, quote its name: [topics."a.b.c"]""",
        ),
        (
            "[topics.shop.value]",
            (
                "topics.shop.value.format: this key is required; allowed: 'raw', 'protobuf', 'avro', 'json'. "
                "If 'shop.value' "
                'is a topic, quote its name: [topics."shop.value"]'
            ),
        ),
        (
            '[topics.orders]\nvalue = { message = "shop.Order" }',
            "topics.orders.value.format: this key is required; allowed: 'raw', 'protobuf', 'avro', 'json'",
        ),
        (
            '[topics.orders]\nvalue = { format = "xml" }',
            "topics.orders.value.format: 'xml' is not known here; allowed: 'raw', 'protobuf', 'avro', 'json'",
        ),
        (
            '[topics.orders]\nvalue = "raw"',
            (
                "topics.orders.value: 'raw' is not a section: write { format = … };"
                " allowed: 'raw', 'protobuf', 'avro', 'json'"
            ),
        ),
        (
            '[topics.orders]\nvalue = { format = "protobuf", mesage = "x" }',
            "topics.orders.value.mesage: there is no such key; did you mean 'message'?",
        ),
        (
            '[topics."orders.eu"]\npartition_by = "week"',
            (
                """topics."orders.eu".partition_by: 'week' is no partition: write 'hour', 'day', 'month' or 'year', """
                'or a list such as ["day", "val.customer.region", "bucket(16, key.__raw__)", '
                '"truncate(4, val.sku)"]'
            ),
        ),
        (
            "[topics.orders]\nretention = 90",
            (
                'topics.orders.retention: every size and duration needs a unit: `retention = "90s"` is what it meant '
                'until now, `"90d"` is likely meant'
            ),
        ),
        (
            '[topics."orders.*"]\nretention = "90"',
            (
                'topics."orders.*".retention: every size and duration needs a unit: `retention = "90s"` is what it '
                'meant until now, `"90d"` is likely meant'
            ),
        ),
        (
            "[defaults]\nretention_size = 500",
            (
                'defaults.retention_size: every size and duration needs a unit: `retention_size = "500B"` is what it '
                'meant until now, `"500GiB"` is likely meant'
            ),
        ),
        (
            "[topics.orders]\ntarget_file_size = 64",
            (
                'topics.orders.target_file_size: every size and duration needs a unit: `target_file_size = "64B"` is '
                'what it meant until now, `"64MiB"` is likely meant'
            ),
        ),
        (
            "[defaults]\nretention = 7776000",
            (
                'defaults.retention: every size and duration needs a unit: `retention = "90d"` is what it meant until '
                "now"
            ),
        ),
        (
            "[archive]\nmax_commit_interval = 60.0",
            (
                'archive.max_commit_interval: every size and duration needs a unit: `max_commit_interval = "1m"` is '
                "what it meant until now"
            ),
        ),
        (
            '[[serve.quotas]]\nprincipal = "User:*"\nbytes_per_second = 1000000',
            (
                'serve.quotas.0.bytes_per_second: every size and duration needs a unit: `bytes_per_second = "1000000B"`'
                " is what it meant until now"
            ),
        ),
        ("[topics.orders]\nretention = 0", "topics.orders.retention: 0 is too small: more than 0"),
        ('[topics.orders]\nmax_lag = "8d"', "topics.orders.max_lag: '8d' is too large: at most 7d"),
        (
            '[topics.orders]\ntarget_file_size = "1KiB"',
            "topics.orders.target_file_size: '1KiB' is too small: at least 1MiB",
        ),
        ('[archive]\ncatalog_connections = "many"', "archive.catalog_connections: 'many' is not a whole number"),
        ("[archive]\nspool = 7", "archive.spool: 7 is not a path in quotes"),
        ('[topics.orders]\nkeep_removed = "no!"', "topics.orders.keep_removed: 'no!' is not true or false"),
        (
            '[metrics]\nlisten = "x"',
            "metrics.listen: 'x' is not an address to listen on: write HOST:PORT, such as 127.0.0.1:9464",
        ),
        ('[topics]\norders = "x"', "topics.orders: 'x' is not a section with keys of its own"),
        ("[traces]", "traces.endpoint: this key is required"),
        (
            "[topics.orders]\nstart_from = 2026-01-31",
            (
                "topics.orders.start_from: 2026-01-31 is not a start: write 'earliest', 'latest' or a time such as "
                "2026-01-31T00:00:00Z"
            ),
        ),
        ('[topics.""]', """A topic's name can't be empty: name it in [topics."NAME"]"""),
        (
            "[archive]\nspool = 7\ntask_size = 0",
            "2 mistakes:\n  archive.spool: 7 is not a path in quotes\n  archive.task_size: 0 is too small: at least 1B",
        ),
    ],
)
def test_a_mistake_is_told_in_one_sentence(tmp_path: Path, text: str, told: str) -> None:
    assert complaint(tmp_path, text) == told


def test_sections_that_are_missing_are_named(tmp_path: Path) -> None:
    assert complaint(tmp_path, "", base="") == (
        "3 mistakes:\n"
        "  kafka: this section is required: add [kafka]\n"
        "  catalog: this section is required: add [catalog]\n"
        "  registry: this section is required: add [registry]"
    )


def test_a_topic_can_not_name_itself_otherwise(tmp_path: Path) -> None:
    message = complaint(tmp_path, '[topics.orders]\nname = "payments"')
    assert message is not None
    assert message.startswith("topics.orders.name: there is no such key; known here: bloom_filter_fpp, ")


@pytest.mark.parametrize("name", ["metrics.*", "a/b", "orders.[ab]"])
def test_a_name_that_toml_does_not_take_is_to_be_quoted(tmp_path: Path, name: str) -> None:
    message = complaint(tmp_path, f"[topics.{name}]\n")
    assert message is not None
    assert f'Quote the topic\'s name: [topics."{name}"]' in message


def test_other_lines_that_are_not_toml_are_not_shown(tmp_path: Path) -> None:
    message = complaint(tmp_path, 'password = hunter2"')
    assert message is not None
    assert "not valid TOML" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "text",
    [
        '[schema_registry]\nurl = "http://r"\npasword = "hunter2"',
        '[traces]\nendpoint = "http://t"\nheaders = "hunter2"',
    ],
)
def test_what_may_be_a_secret_is_not_shown(tmp_path: Path, text: str) -> None:
    message = complaint(tmp_path, text)
    assert message is not None
    assert "hunter2" not in message


def test_every_pattern_has_words_for_it() -> None:
    for model in (*SECTIONS.values(), *FORMATS.values(), TopicConfig, KafkaOptions):
        for name, field in model.model_fields.items():
            if any(getattr(constraint, "pattern", None) for constraint in field.metadata):
                assert field.description, f"{model.__name__}.{name}"
