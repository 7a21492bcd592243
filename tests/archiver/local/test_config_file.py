"""The archiver.toml of a stack."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.local import config_file
from archiver.local.endpoints import Endpoints


@pytest.fixture
def endpoints(tmp_path: Path) -> Endpoints:
    return Endpoints(
        directory=tmp_path,
        config_path=tmp_path / config_file.FILE_NAME,
        bootstrap_servers="127.0.0.1:15000",
        catalog_uri="http://127.0.0.1:15001",
        warehouse="s3://tables",
        s3_endpoint="http://127.0.0.1:15002",
        s3_region="us-east-1",
        bucket="lake",
        access_key="AK",
        secret_key='quoted " and \\ and ü',
        postgres_dsn="postgresql://archiver:pw@127.0.0.1:15003/archiver",
    )


def test_the_archiver_loads_it(endpoints: Endpoints):
    config_file.refresh(endpoints, known_digest="", moved={})
    config = load_config(endpoints.config_path, environment={})
    assert config.kafka == {"bootstrap.servers": "127.0.0.1:15000"}
    assert config.catalog == endpoints.catalog_properties
    assert config.registry.dsn == endpoints.postgres_dsn
    assert config.archive.spool == endpoints.directory / "spool"
    assert stat.S_IMODE(endpoints.config_path.stat().st_mode) == 0o600


def test_an_untouched_file_is_written_anew(endpoints: Endpoints):
    digest = config_file.refresh(endpoints, known_digest="", moved={})
    moved = replace(endpoints, bootstrap_servers="127.0.0.1:16000")
    config_file.refresh(moved, known_digest=digest, moved={15_000: 16_000})
    assert endpoints.config_path.read_text() == config_file.render(moved)


def test_an_edited_file_keeps_its_edits_and_follows_the_ports(endpoints: Endpoints):
    digest = config_file.refresh(endpoints, known_digest="", moved={})
    edit = "\n[topics.flights]\n"
    endpoints.config_path.write_text(endpoints.config_path.read_text() + edit)
    moved = replace(endpoints, bootstrap_servers="127.0.0.1:15001", catalog_uri="http://127.0.0.1:15000")
    remembered = config_file.refresh(moved, known_digest=digest, moved={15_000: 15_001, 15_001: 15_000})
    assert remembered == ""
    assert endpoints.config_path.read_text() == config_file.render(moved) + edit


def test_secrets_are_left_out_of_what_is_shown(endpoints: Endpoints):
    shown = repr(endpoints) + str(endpoints.public())
    assert "quoted" not in shown
    assert ":pw@" not in shown
    assert endpoints.secrets()["postgres_dsn"] == endpoints.postgres_dsn
