"""The files in conf/."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

import archiver.errors
import catalog.errors
from archiver.chores.runner import ChoreEnded
from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import StorageUnavailable
from archiver.flight.endpoint import FlightEndpoint
from archiver.serve.kafka.endpoint import Endpoint
from archiver.telemetry.health import Health
from archiver.telemetry.instruments import Instruments
from archiver.telemetry.metering import ChoreMetering, ExpireMetering, Metering
from archiver.telemetry.serving import Answered, ServeInstruments, ServingSources, Traffic
from archiver.upkeep.retire.report import ExpireFinished, ExpireReport, TopicRetired
from tests.support.archive.job_events import play

CONF = Path(__file__).parents[1] / "conf"
DOCUMENTS = list(yaml.safe_load_all((CONF / "kubernetes.yaml").read_text()))
SERVE_DOCUMENTS = list(yaml.safe_load_all((CONF / "kubernetes-serve.yaml").read_text()))
FLIGHT_DOCUMENTS = list(yaml.safe_load_all((CONF / "kubernetes-flight.yaml").read_text()))
VERSION = kubernetes_validate.latest_version()


@pytest.mark.parametrize(
    "document", DOCUMENTS + SERVE_DOCUMENTS + FLIGHT_DOCUMENTS, ids=lambda manifest: manifest["kind"]
)
def test_kubernetes_takes_the_manifest(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_the_schema_is_asked() -> None:
    broken = {**DOCUMENTS[2], "spec": {**DOCUMENTS[2]["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSION, strict=True)


def test_the_configuration_in_it_loads_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, secret, deployment, service = DOCUMENTS
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        if "valueFrom" in variable:
            reference = variable["valueFrom"]["secretKeyRef"]
            assert reference["name"] == secret["metadata"]["name"]
            monkeypatch.setenv(variable["name"], secret["stringData"][reference["key"]])
    path = tmp_path / "archiver.toml"
    path.write_text(configuration["data"]["archiver.toml"])
    loaded = load_config(path)
    assert loaded.registry.dsn == secret["stringData"]["registry-dsn"]
    assert loaded.metrics is not None
    assert loaded.metrics.port == container["ports"][0]["containerPort"] == service["spec"]["ports"][0]["port"]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(loaded.archive.spool.parent) in mounts  # the mounted folder itself is root's
    assert_arguments_exist(container["args"])


def test_the_servers_configuration_loads_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, secret, nodes, service = SERVE_DOCUMENTS[:4]
    (container,) = nodes["spec"]["template"]["spec"]["containers"]
    variables = {entry["name"]: entry for entry in container["env"]}
    for name in ("CATALOG_CREDENTIAL", "REGISTRY_DSN"):
        reference = variables[name]["valueFrom"]["secretKeyRef"]
        assert reference["name"] == secret["metadata"]["name"]
        monkeypatch.setenv(name, secret["stringData"][reference["key"]])
    path = tmp_path / "archiver.toml"
    path.write_text(configuration["data"]["archiver.toml"])
    advertise = variables["ARCHIVER__SERVE__ADVERTISE"]["value"].replace("$(POD_NAME)", "archiver-serve-0")
    loaded = load_config(path, {"ARCHIVER__SERVE__ADVERTISE": advertise})
    assert loaded.serve.advertise == f"archiver-serve-0.{nodes['spec']['serviceName']}:9192"
    ports = {entry["name"]: entry["containerPort"] for entry in container["ports"]}
    assert ports == {entry["name"]: entry["port"] for entry in service["spec"]["ports"]}
    assert loaded.serve.listen.endswith(f":{ports['kafka']}")
    assert loaded.serve.metrics is not None
    assert loaded.serve.metrics.endswith(f":{ports['metrics']}")
    Endpoint(loaded)
    assert_arguments_exist(container["args"])


def test_the_flight_servers_configuration_loads_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, secret, pods, service = FLIGHT_DOCUMENTS[:4]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable for variable in container["env"]}
    for name in ("CATALOG_CREDENTIAL", "REGISTRY_DSN"):
        reference = variables[name]["valueFrom"]["secretKeyRef"]
        assert reference["name"] == secret["metadata"]["name"]
        monkeypatch.setenv(name, secret["stringData"][reference["key"]])
    path = tmp_path / "archiver.toml"
    path.write_text(configuration["data"]["archiver.toml"].replace("/tmp/spool", str(tmp_path / "spool")))
    loaded = load_config(path, {})
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert loaded.flight.listen.endswith(f":{ports['flight']}")
    assert loaded.flight.metrics is not None
    assert loaded.flight.metrics.endswith(f":{ports['metrics']}")
    (volume,) = pods["spec"]["volumeClaimTemplates"]
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == volume["metadata"]["name"]]
    assert str(loaded.flight.wal).startswith(mount["mountPath"])
    FlightEndpoint(loaded)
    assert_arguments_exist(container["args"])


UNITS = ("archiver.service", "archiver-serve.service", "archiver-flight.service")


def unit(name: str) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(CONF / name)
    return parsed


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_starts_a_command_that_exists(name: str) -> None:
    service = unit(name)["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0].endswith("/archiver")
    assert_arguments_exist(command[1:])
    assert service["RestartPreventExitStatus"] == "2"


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_leaves_java_to_path_and_ends_well_by_signals(name: str) -> None:
    text = (CONF / name).read_text()
    settings = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any("JAVA_HOME" in line for line in settings), "no path of a JDK is the same on all systems"
    assert unit(name)["Service"]["SuccessExitStatus"].split() == ["130", "143"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit(tmp_path: Path, name: str) -> None:
    text = (CONF / name).read_text().replace("/opt/archiver/bin/archiver", "/bin/true")
    path = tmp_path / name
    path.write_text(text.replace("User=archiver", "User=root").replace("Group=archiver", "Group=root"))
    checked = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def assert_arguments_exist(arguments: list[str]) -> None:
    words = [str(Path("nowhere.toml")) if argument.endswith(".toml") else argument for argument in arguments]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "There is no configuration file here" in done.stderr


GROUPS = yaml.safe_load((CONF / "prometheus-alerts.yaml").read_text())["groups"]
SERVE_GROUPS = yaml.safe_load((CONF / "prometheus-serve-alerts.yaml").read_text())["groups"]
SERVE_ALERTS = [rule for group in SERVE_GROUPS for rule in group["rules"]]
ALERTS = [rule for group in GROUPS for rule in group["rules"]]
DASHBOARD = json.loads((CONF / "grafana-dashboard.json").read_text())
IMPORTANT = {
    "archiver_runs",
    "archiver_failures",
    "archiver_lost_offsets",
    "archiver_lag_seconds",
    "archiver_lag_offsets",
    "archiver_values",
    "archiver_failed_values",
    "archiver_unrecognized_values",
    "archiver_schema_doubts",
    "archiver_commit_seconds",
}


@cache
def declared() -> dict[str, tuple[set[str], set[str]]]:
    instruments = Instruments()
    play(Metering(instruments, Health(stalled_after=60)))
    retired = ExpireReport(topics=(TopicRetired(topic="orders", table="t"),), dry_run=False, seconds=0.0)
    ExpireMetering(instruments)(ExpireFinished(report=retired))
    failed = (StorageUnavailable("away"),)
    ChoreMetering(instruments)(ChoreEnded(topic="orders", chore="compaction", seconds=1.0, failures=failed))
    return {
        family.name: (
            {sample.name for sample in family.samples},
            {label for sample in family.samples for label in sample.labels},
        )
        for family in instruments.registry.collect()
    }


@cache
def declared_by_servers() -> dict[str, set[str]]:
    instruments = ServeInstruments()
    traffic = Traffic(instruments.registry)
    traffic.answered(Answered(api="Fetch", version=12, client="", client_id="", seconds=0, sent_bytes=0))
    traffic.partition_error("kafka_storage_error")
    names = ("connections", "cache_bytes", "cache_chunks", "cache_hits", "cache_misses", "disk_bytes", "disk_hits")
    numbers = dict.fromkeys(names, lambda: 1)
    sources = ServingSources(
        **numbers,
        decode_seconds=lambda: 1.0,
        members=lambda: {"g": 1},
        nodes=lambda: 1,
        view=lambda: 1,
        is_leased=lambda: True,
        ends=lambda: [("orders", 0, 5)],
        lag=[("g", "orders", 0, 5)],
    )
    instruments.read(sources)
    families = list(instruments.registry.collect())
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def test_alerts_of_servers_name_metrics_and_labels_that_exist() -> None:
    metrics = declared_by_servers()
    assert {rule["labels"]["severity"] for rule in SERVE_ALERTS} <= {"warning", "critical"}
    for rule in SERVE_ALERTS:
        named = re.findall(r"\barchiver_\w+", rule["expr"])
        assert named
        assert set(named) <= metrics.keys()
        labels = {label for item in named for label in metrics[item]}
        mentioned = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        grouped = [word.strip() for item in re.findall(r"by \(([^)]*)\)", rule["expr"]) for word in item.split(",")]
        assert mentioned | set(grouped) | set(re.findall(r'(\w+)\s*=~?\s*"', rule["expr"])) <= labels


def test_the_page_names_every_metric_of_servers() -> None:
    text = (CONF.parent / "docs" / "serve.md").read_text()
    samples = [server for server in declared_by_servers() if not server.endswith("_created")]
    names = {re.sub(r"_(bucket|sum|count)$", "", sample) for sample in samples}
    missing = {name for name in names if f"`{name}`" not in text and not name.startswith("archiver_process")}
    assert not missing


def expressions() -> list[tuple[str, str]]:
    panels = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
    queries = [
        (variable["name"], variable["query"])
        for variable in DASHBOARD["templating"]["list"]
        if variable["type"] == "query"
    ]
    return [(rule["alert"], rule["expr"]) for rule in ALERTS] + panels + queries


@pytest.mark.parametrize(("place", "expression"), expressions())
def test_expressions_name_metrics_and_labels_that_exist(place: str, expression: str) -> None:
    metrics = declared()
    samples = {sample: labels for names, labels in metrics.values() for sample in names}
    named = set(re.findall(r"\barchiver_\w+", expression))
    assert named, place
    assert named <= samples.keys()
    about = {label for metric in named for label in samples[metric]} | {"le"}
    matched = re.findall(r'(\w+)\s*=~?\s*"', expression)
    grouped = [label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")]
    assert {*matched, *grouped} <= about
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)


def test_counters_are_read_as_rates_and_all_metrics_are_shown() -> None:
    metrics = declared()
    text = "\n".join(expression for _, expression in expressions())
    for name, (samples, _) in metrics.items():
        shown = [sample for sample in samples if re.search(rf"\b{sample}\b", text)]
        if not name.startswith("archiver_process"):
            assert shown, f"{name} is on no panel and in no alert"
    for expression in (expression for title, expression in expressions() if title != "Offsets recorded as lost"):
        for counter in re.findall(r"\barchiver_\w+_total\b", expression):
            before = expression[: expression.index(counter)]
            assert re.search(r"(rate|increase|absent)\($", before), f"{counter} only ever grows: {expression}"


def test_alerts_say_what_to_do_and_cover_what_matters() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    labels = {sample: labels for samples, labels in declared().values() for sample in samples}
    for rule in ALERTS:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
        mentioned = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert mentioned <= {
            label for metric in re.findall(r"\barchiver_\w+", rule["expr"]) for label in labels[metric]
        }
    text = "\n".join(rule["expr"] for rule in ALERTS)
    assert {name for name in IMPORTANT if name in text} == IMPORTANT


def test_errors_that_alerts_name_exist() -> None:
    (rule,) = (rule for rule in ALERTS if rule["alert"] == "ArchiverNeedsAPerson")
    (pattern,) = re.findall(r'error=~"([^"]+)"', rule["expr"])
    errors = {name for module in (archiver.errors, catalog.errors) for name in vars(module)}
    for part in pattern.split("|"):
        assert any(re.fullmatch(part, name) for name in errors), part


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {(grid["x"] + x, grid["y"] + y) for x in range(grid["w"]) for y in range(grid["h"])}
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["source", "topic"]
