"""Names and links in the docs exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from archiver.cli.app import app
from archiver.config.flight_section import FlightSection
from archiver.config.formats import AvroFormat, JsonFormat, ProtobufFormat
from archiver.config.model import (
    ArchiveSection,
    MetricsSection,
    RegistrySection,
    SchemaRegistrySection,
    ServeSection,
    TopicSection,
    TracesSection,
)
from archiver.config.quantities import parse_bytes, parse_seconds
from archiver.config.serve_security import AclSection, OauthSection, QuotaSection, SaslSection, TlsSection
from archiver.kafka.options import KafkaOptions

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
SECTIONS: Mapping[str, type[BaseModel]] = {
    "[kafka]": KafkaOptions,
    "[registry]": RegistrySection,
    "[schema_registry]": SchemaRegistrySection,
    "[archive]": ArchiveSection,
    "[metrics]": MetricsSection,
    "[serve]": ServeSection,
    "[serve.tls]": TlsSection,
    "[serve.sasl]": SaslSection,
    "[serve.oauth]": OauthSection,
    "[[serve.acls]]": AclSection,
    "[[serve.quotas]]": QuotaSection,
    "[flight]": FlightSection,
    "[traces]": TracesSection,
    "[defaults] and [topics.NAME]": TopicSection,
    "Formats": ProtobufFormat,
    "Avro": AvroFormat,
    "JSON": JsonFormat,
}
IN_WORDS = {
    "spool": Path(tempfile.gettempdir()) / f"archiver-spool-{os.getuid()}",
    "algorithms": ("RS256", "PS256", "ES256"),
    "operations": ("read",),
    "table": None,
    "key": None,
    "value": None,
}


def sections() -> dict[str, str]:
    parts = re.split(r"^##+ (.*)$", (ROOT / "docs" / "configuration.md").read_text(), flags=re.MULTILINE)
    return {title.replace("`", ""): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def keys_of(model: type[BaseModel]) -> dict[str, Any]:
    named = {
        field.alias or name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items()
    }
    return {name: default for name, default in named.items() if name not in ("journal_properties", "format")}


def rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("| `"):
            yield re.findall(r"`([^`\"]+)`", cells[0]), re.split(r", (?=[\d`])", cells[1])


@pytest.mark.parametrize("title", SECTIONS)
def test_every_key_is_named(title: str) -> None:
    named = set(re.findall(r"`\"?([a-z_.0-9]+)", sections()[title]))
    assert set(keys_of(SECTIONS[title])) <= named
    in_tables = {key for keys, _ in rows(sections()[title]) for key in keys}
    assert in_tables <= set(keys_of(SECTIONS[title]))


@pytest.mark.parametrize("title", [title for title in SECTIONS if title != "[registry]"])
def test_defaults_are_true(title: str) -> None:
    fields = keys_of(SECTIONS[title])
    for keys, defaults in rows(sections()[title]):
        for key, text in zip(keys, defaults if len(defaults) == len(keys) else defaults * len(keys), strict=True):
            if key not in IN_WORDS:
                assert is_default(fields[key], text.strip("`")), (key, fields[key], text)


def is_default(value: Any, text: str) -> bool:
    match value:
        case bool():
            return text == str(value).lower()
        case int() | float():
            plain = text.replace(",", "")
            readings = {parse(plain) for parse in (parse_bytes, parse_seconds) if _parses(parse, plain)}
            return value in readings or (plain.replace(".", "").isdecimal() and value == float(plain))
        case str() if value:
            return text == value
        case _:
            return text in ("", "\u2013", "none", "off", "required", "the system's", "[]")


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def test_the_page_of_commands_is_what_the_help_says() -> None:
    """After a change of the command line: `make docs`."""
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "scripts" / "cli_docs.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert (ROOT / "docs" / "cli.md").read_text() == made.page()


def command_lines() -> list[str]:
    fence = re.compile(r"^```(?:sh|console)$(.*?)^```", re.MULTILINE | re.DOTALL)
    blocks = (block for page in PAGES for block in fence.findall(page.read_text()))
    lines = (line.removeprefix("$ ").split(" #")[0].strip() for block in blocks for line in block.splitlines())
    return sorted({line for line in lines if line.startswith("archiver ")})


@cache
def command_tree() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("line", command_lines())
def test_commands_have_the_options_named(line: str) -> None:
    command = command_tree()
    words = shlex.split(line)[1:]
    for word in words:
        if word.startswith("-") or word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
    assert not hasattr(command, "commands"), f"no such command: {line}"
    options = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    assert {word for word in words if re.match("-[a-zA-Z-]", word)} <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    named = set(
        re.findall(r"`((?:archiver|catalog|schema_mapping|tests|bench|conf|scripts)/[\w./-]+\.\w+)`", page.read_text())
    )
    missing = {name for name in named if not (ROOT / name).exists() and not (ROOT / "proto" / name).exists()}
    assert not missing


def test_every_decision_is_listed_once_in_order() -> None:
    folder = ROOT / "docs" / "adr"
    listed = re.findall(r"^\| \[(\d+)\]\((\d+-[^)]+)\)", (folder / "README.md").read_text(), flags=re.MULTILINE)
    assert [name for _, name in listed] == sorted(file.name for file in folder.glob("[0-9]*.md"))
    assert all(name.startswith(number) for number, name in listed)


@pytest.mark.parametrize("term", ["dead-letter table", "upsert", "coordinator", "backfill"])
def test_terms_that_people_search_for_have_a_row(term: str) -> None:
    rows = [line for line in (ROOT / "docs" / "terms.md").read_text().splitlines() if line.startswith("| ")]
    (row,) = [row for row in rows if re.search(rf"(^\| |, ){term}(,| \|)", row)]
    assert len(row.split("|")[2]) > 40
    assert "docs/terms.md" in (ROOT / "README.md").read_text()
