from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel, BeforeValidator

from archiver.config import Config, load_config
from archiver.config.model import ArchiveSection, AuditSection, ServeSection, TopicSection
from archiver.config.quantities import bytes_text, parse_bytes, parse_seconds, seconds_text
from archiver.errors import ConfigError

MINIMAL = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[catalog]
uri = "http://127.0.0.1:8181"
[registry]
dsn = "postgresql://archiver:hunter2@127.0.0.1/archiver"
"""


def load(tmp_path: Path, text: str = "", environment: Mapping[str, str] | None = None) -> Config:
    file = tmp_path / "archiver.toml"
    file.write_text(MINIMAL + text)
    return load_config(file, environment or {})


def test_a_topic_takes_its_own_section_over_the_defaults(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [defaults]
        partition_by = "month"
        target_file_size = "64MiB"
        [topics.orders]
        partition_by = "hour"
        value = { format = "protobuf", message = "shop.Order", descriptors = "shop.binpb" }
        """,
    )
    orders = config.topic("orders")
    assert (orders.table, orders.partition_by, orders.target_file_size) == ("kafka.orders", "hour", 64 << 20)
    assert orders.value.format == "protobuf"
    assert orders.value.descriptors == tmp_path / "shop.binpb"
    assert orders.key.format == "raw"


def test_content_columns_are_set_by_topic_and_format(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [defaults]
        well_known_types = "native"
        [topics.orders]
        keep_removed = false
        expand_cuts = true
        uint64 = "decimal"
        key = { format = "protobuf", message = "shop.Key", proto = "key.proto" }
        [topics.orders.value]
        format = "protobuf"
        message = "shop.Order"
        proto = ["shop/order.proto", "shop/rebate.proto"]
        imports = ["shop"]
        extensions = ["shop.rebate", "shop.Order.note"]
        """,
        {"ARCHIVER__TOPICS__ORDERS__KEY__PROTO": "other.proto"},
    )
    orders = config.topic("orders")
    assert (orders.keep_removed, orders.expand_cuts) == (False, True)
    assert (orders.well_known_types, orders.uint64) == ("native", "decimal")
    assert orders.key.format == orders.value.format == "protobuf"
    assert orders.key.proto == (tmp_path / "other.proto",)
    assert orders.value.proto == (tmp_path / "shop/order.proto", tmp_path / "shop/rebate.proto")
    assert orders.value.imports == (tmp_path / "shop",)
    assert orders.value.extensions == ("shop.rebate", "shop.Order.note")


def test_the_longest_matching_pattern_speaks_for_a_topic(tmp_path: Path) -> None:
    config = load(
        tmp_path, '[topics."orders.*"]\npartition_by = "month"\n[topics."orders.eu.*"]\npartition_by = "hour"'
    )
    assert config.topic("orders.us.web").partition_by == "month"
    assert config.topic("orders.eu.web").partition_by == "hour"
    assert config.topic("orders.eu.web").table == "kafka.orders_eu_web"


def test_topics_are_named_ones_and_pattern_matches(tmp_path: Path) -> None:
    config = load(tmp_path, '[topics.payments]\n[topics."orders.*"]')
    chosen = config.select(existing=["orders.eu", "orders.us", "unrelated"])
    assert [topic.name for topic in chosen] == ["orders.eu", "orders.us", "payments"]


def test_a_topic_that_no_section_speaks_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"add \[topics\.'stray'\]"):
        load(tmp_path, "[topics.orders]").select(existing=["stray"], wanted=["stray"])


def test_two_topics_with_one_table_stop_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="share one table"):
        load(tmp_path, '[topics."Orders-EU"]\n[topics."orders.eu"]')


@pytest.mark.parametrize(
    ("template", "table"),
    [
        ("{namespace}.{topic}", "kafka.orders_eu"),
        ("raw.{topic}", "raw.orders_eu"),
        ("{namespace}.eu.t_{topic}_{hash}", "kafka.eu.t_orders_eu_8bc6d77e"),
        ("lake.{hash}", "lake.8bc6d77e"),
        ("{namespace}.{hash}_{topic}", "kafka.8bc6d77e_orders_eu"),
        ("a.b.c.{topic}", "a.b.c.orders_eu"),
        ("{namespace}.t{hash}", "kafka.t8bc6d77e"),
    ],
)
def test_a_pattern_names_tables_by_a_template(tmp_path: Path, template: str, table: str) -> None:
    config = load(tmp_path, f'[topics."Orders*"]\ntable = "{template}"\n[topics.payments]')
    assert config.topic("Orders.EU").table == table
    assert config.topic("payments").table == "kafka.payments"
    assert set(config.namespaces) == {"kafka", table.rpartition(".")[0]}


def test_hashes_tell_topics_apart_that_would_share_a_table(tmp_path: Path) -> None:
    config = load(tmp_path, '[defaults]\ntable = "kafka.{topic}_{hash}"\n[topics."*"]')
    names = ["orders", "Orders", "a.b", "a_b", "a-b"]
    assert len({config.topic(name).table for name in names}) == len(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[topics.orders]\ntabel = "x.y"', r"topics\.orders\.tabel: there is no such key; did you mean 'table'"),
        ('[topics.orders]\nvalue = { format = "xml" }', r"topics\.orders\.value\.format: 'xml'.*'raw', 'protobuf'"),
        ('[topics.orders]\nvalue = { format = "protobuf" }', r"orders\.value: give `message`"),
        (
            '[topics.orders]\nvalue = { format = "protobuf", message = "m" }',
            "either `descriptors`",
        ),
        ('[topics.orders]\ntarget_file_size = "huge"', "is not a size"),
        ('[topics.orders]\nstart_from = "yesterday"', "is not a start"),
        ('[topics.orders]\nstart_from = "2026-01-01T00:00:00"', "no time zone"),
        ('[topics.orders]\ntable = "Bad Name"', r"topics\.orders\.table"),
        ('[topics."a*"]\ntable = "x.y"', r"pattern can't name one table.*\{topic\}.*topics\.\"a\*\"\.table"),
        ('[topics."a*"]\ntable = "{namespace}.y"', "pattern can't name one table"),
        ('[defaults]\ntable = "x.y"\n[topics."a*"]', r"pattern can't name one table.*key='defaults\.table'"),
        ('[topics."a*"]\ntable = "{topic}.y"', r"table: '\{topic\}\.y' is not the name of a table.*\{namespace\}"),
        ('[topics."a*"]\ntable = "x.{partition}"', "is not the name of a table"),
        ("[defaults]\nfoo = 1", r"defaults\.foo: there is no such key"),
        ("[archive]\nspoool_size = 1", "did you mean 'spool_size'"),
        ("[somewhere]\na = 1", r"somewhere: there is no such key"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)


def test_a_user_in_the_catalogs_address_is_refused_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`credential` .* or `token`") as failure:
        load(tmp_path, "", {"ARCHIVER__CATALOG__URI": "http://me:hush@catalog:8181"})
    assert "hush" not in str(failure.value)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config"):
        load_config(tmp_path / "nowhere.toml", {})


def test_broken_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(tmp_path, "[topics")


def test_environment_overrides_and_restores_foreign_names(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[spark]\n"spark.sql.shuffle.partitions" = 4\n[topics.orders]',
        {
            "ARCHIVER__KAFKA__BOOTSTRAP_SERVERS": "broker:9092",
            "ARCHIVER__CATALOG__S3__ACCESS_KEY_ID": "key",
            "ARCHIVER__SPARK__SPARK__SQL__SHUFFLE__PARTITIONS": "2",
            "ARCHIVER__TOPICS__ORDERS__PARTITION_BY": "hour",
            "ARCHIVER__ARCHIVE__MAX_COMMIT_INTERVAL": "30s",
        },
    )
    assert config.kafka["bootstrap.servers"] == "broker:9092"
    assert config.catalog["s3.access-key-id"] == "key"
    assert config.spark["spark.sql.shuffle.partitions"] == "2"
    assert config.topic("orders").partition_by == "hour"
    assert config.archive.max_commit_interval == 30


def test_unquoted_dotted_keys_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(MINIMAL.replace('"bootstrap.servers"', "bootstrap.servers"))
    assert load_config(file, {}).kafka["bootstrap.servers"] == "127.0.0.1:9092"


def test_secrets_come_from_files_and_are_not_printed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    config = load(tmp_path, "", {"ARCHIVER__CATALOG__CREDENTIAL": "from-env"})
    assert config.catalog["credential"] == "from-env"
    with_file = tmp_path / "with-file.toml"
    with_file.write_text(MINIMAL.replace("[catalog]", f'"sasl.password" = {{ file = "{tmp_path}/secret" }}\n[catalog]'))
    config = load_config(with_file, {})
    assert config.kafka["sasl.password"] == "s3cret"
    assert "s3cret" not in repr(config)
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("section", "key", "read"),
    [
        ("schema_registry", 'url = "https://r"\ntoken', lambda config: config.schema_registry.token),
        ("traces", 'endpoint = "https://t/v1/traces"\nheaders', lambda config: config.traces.named_headers["x-token"]),
        (
            "archive",
            '"journal.s3.secret-access-key"',
            lambda config: next(iter(config.archive.journal_properties.values())),
        ),
    ],
)
def test_secrets_of_other_sections_come_from_files_too(
    tmp_path: Path, section: str, key: str, read: Callable[[Config], str]
) -> None:
    (tmp_path / "secret").write_text("x-token=s3cret\n" if section == "traces" else "s3cret\n")
    config = load(tmp_path, f'[{section}]\n{key} = {{ file = "{tmp_path}/secret" }}')
    assert read(config) == "s3cret"
    assert "s3cret" not in repr(config)


def test_tables_lie_where_sections_say(tmp_path: Path) -> None:
    config = load(tmp_path, '[topics.orders]\ntable = "shop.eu.orders"\n[topics."metrics.*"]')
    assert config.namespaces == ("kafka", "shop.eu")
    assert config.table_of("orders") == "shop.eu.orders"
    assert config.table_of("metrics.cpu") == "kafka.metrics_cpu"
    assert config.table_of("payments") is None


def test_a_start_time_keeps_its_zone(tmp_path: Path) -> None:
    config = load(tmp_path, "[topics.orders]\nstart_from = 2026-01-02T03:04:05Z")
    assert config.topic("orders").start_from == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "section"),
    [("archive", ArchiveSection), ("audit", AuditSection), ("serve", ServeSection), ("defaults", TopicSection)],
)
def test_defaults_keep_the_limits_of_their_keys(tmp_path: Path, name: str, section: type[BaseModel]) -> None:
    texts: dict[str, str] = {}
    for key, field in section.model_fields.items():
        parsers = {item.func for item in field.metadata if isinstance(item, BeforeValidator)}
        if field.default is not None and parsers & {parse_bytes, parse_seconds}:
            texts[key] = bytes_text(field.default) if parse_bytes in parsers else seconds_text(field.default)
    assert texts
    load(tmp_path, "\n".join([f"[{name}]", *(f'{key} = "{text}"' for key, text in texts.items())]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[catalog]\n"s3.sse.typ" = "kms"\nuri = "http://x"\n', "catalog: s3.sse.typ has no effect here"),
        ('[catalog]\nwharehouse = "w"\nuri = "http://x"\n', "catalog: wharehouse has no effect .* `warehouse`"),
        ('[catalog]\nuri = "http://x"\nssl.cabundle = "/none.pem"\n', "ssl.cabundle: there is no file /none.pem"),
        ('[catalog]\nuri = "http://x"\nssl.client.key = "/dev/null"\n', "ssl.client.key needs ssl.client.cert"),
        ('[archive]\njournal = "s3://b/j"\n"journal.s3.sse.tpe" = "kms"\n', "journal.s3.sse.tpe has no effect here"),
        ('[archive]\njournal = "s3://b/j"\n"journal.fs.s3a.endpoint" = "x"\n', "journal.fs.s3a.endpoint has no effect"),
        ('[archive]\njournal = "s3://b/j"\n"journal.s3.sse.type" = "x"\n', "journal.s3.sse.type: 'x' is no kind"),
    ],
)
def test_store_settings_without_effect_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "archiver.toml"
    minimal = MINIMAL.replace('[catalog]\nuri = "http://127.0.0.1:8181"\n', "") if "[catalog]" in text else MINIMAL
    file.write_text(minimal + text)
    with pytest.raises(ConfigError, match=message):
        load_config(file, {})


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(MINIMAL, encoding="utf-8-sig")
    assert load_config(file, {}).catalog["uri"] == "http://127.0.0.1:8181"


def test_certificates_of_the_catalog_are_relative_to_the_file(tmp_path: Path) -> None:
    tables = (
        '[catalog]\nuri = "http://x"\nssl.cabundle = "ca.pem"\nssl.client = { cert = "my/a.pem", key = "/dev/null" }\n'
    )
    file = tmp_path / "archiver.toml"
    file.write_text(MINIMAL.replace('[catalog]\nuri = "http://127.0.0.1:8181"\n', tables))
    with pytest.raises(ConfigError, match=f"catalog: ssl.cabundle: there is no file {tmp_path / 'ca.pem'}"):
        load_config(file, {})
    (tmp_path / "my").mkdir()
    for name in ("ca.pem", "my/a.pem", "other.pem"):
        (tmp_path / name).touch()
    catalog = load_config(file, {}).catalog
    assert catalog["ssl.cabundle"] == str(tmp_path / "ca.pem")
    assert catalog["ssl.client.cert"] == str(tmp_path / "my/a.pem")
    assert catalog["ssl.client.key"] == "/dev/null"
    overridden = load_config(file, {"ARCHIVER__CATALOG__SSL__CABUNDLE": "other.pem"}).catalog
    assert overridden["ssl.cabundle"] == str(tmp_path / "other.pem")


FLIGHT = '[topics.sensors]\nsource = "flight"\npartitions = 4\n'
WITHOUT_KAFKA = MINIMAL.partition("[catalog]")[1] + MINIMAL.partition("[catalog]")[2]


def test_flight_topics_need_no_kafka(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(WITHOUT_KAFKA + FLIGHT)
    config = load_config(file, {})
    assert not config.has_kafka
    assert [topic.name for topic in config.select(())] == ["sensors"]
    with pytest.raises(ConfigError, match="There is no topic of Kafka to archive: all sections have source"):
        config.select_kafka(())
    file.write_text(WITHOUT_KAFKA + FLIGHT + "[topics.orders]\n")
    with pytest.raises(ConfigError, match=r"kafka: this section is required: add \[kafka\]"):
        load_config(file, {})


def test_kafka_topics_are_selected_without_flight_topics(tmp_path: Path) -> None:
    config = load(tmp_path, FLIGHT + '[topics.orders]\n[topics."s*"]\n')
    existing = ("sensors", "sales", "other")
    assert config.kafka_sections == ("orders", "s*")
    assert [topic.name for topic in config.select_kafka(existing)] == ["orders", "sales"]
    assert [topic.name for topic in config.select(existing)] == ["orders", "sales", "sensors"]
    with pytest.raises(ConfigError, match="rows come from Flight clients: `archiver serve flight` writes them"):
        config.select_kafka((), ["sensors"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('source = "kafka"', '`partitions` goes with source = "flight"'),
        ('source = "flight"\non_parse_error = "halt"', 'on_parse_error = "halt" goes with source = "kafka"'),
        ('source = "flight"\ncompact = "auto"', 'compact = "auto" goes with source = "kafka"'),
        ('source = "flight"\nstart_from = "latest"', 'topics with source = "flight" begin at offset 0'),
    ],
)
def test_settings_of_another_source_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"[topics.sensors]\npartitions = 4\n{line}\n")
    assert message in str(caught.value)


JSON_VALUES = 'value = { format = "json", schema = "s.json" }\n'


def test_a_column_may_have_the_keys(tmp_path: Path) -> None:
    topic = load(tmp_path, FLIGHT + JSON_VALUES + 'key = "device"\n').topic("sensors")
    assert (topic.key_column, topic.key.format, topic.key.has_schema) == ("device", "raw", False)
    assert load(tmp_path, FLIGHT).topic("sensors").key_column is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (FLIGHT + 'key = "device"\n', "a column as `key` needs a format of `value` with a schema"),
        (FLIGHT + 'value = { format = "raw", column = "device" }\n', "`column` goes with `key`"),
        (f'[topics.t]\nkey = {{ format = "raw", column = "x" }}\n{JSON_VALUES}', 'goes with source = "flight"'),
        ('[topics.t]\nkey = "device"\n', "'device' is not a section: write { format = … }"),
    ],
)
def test_wrong_columns_of_keys_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, lines)
    assert message in str(caught.value)


def test_a_flight_topic_needs_partitions_and_a_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='source = "flight" needs `partitions`, from 1 to 1,024'):
        load(tmp_path, '[topics.sensors]\nsource = "flight"\n')
    with pytest.raises(ConfigError, match="A pattern can't have source"):
        load(tmp_path, '[topics."s*"]\nsource = "flight"\npartitions = 1\n')
    with pytest.raises(ConfigError, match="no name of a Kafka topic"):
        load(tmp_path, '[topics."a b"]\nsource = "flight"\npartitions = 1\n')


def test_messages_that_arrive_need_room(tmp_path: Path) -> None:
    for settings in ("", '[flight]\nmax_message_size = "256MiB"\n', "[flight]\nmax_streams = 10_000\n"):
        assert load(tmp_path, FLIGHT + settings).flight.receive_memory is None
    with pytest.raises(
        ConfigError, match=r"need 8,192 MiB while they arrive, more than `receive_memory` \(4,096 MiB\)"
    ):
        load(tmp_path, FLIGHT + '[flight]\nmax_message_size = "32MiB"\nreceive_memory = "4GiB"\n')
    allowed = load(tmp_path, FLIGHT + '[flight]\nmax_message_size = "32MiB"\nreceive_memory = "8GiB"\n')
    assert allowed.flight.max_streams * allowed.flight.max_message_size == allowed.flight.receive_memory
