"""The files in conf/, by the schemas of those who read them; the configuration inside by our own loader."""

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
from archiver.cli.app import app
from archiver.config import load_config
from archiver.observe.health import Health
from archiver.observe.instruments import Instruments
from archiver.observe.metering import Metering
from tests.support.archive.job_events import play

CONF = Path(__file__).parents[1] / "conf"
DOCUMENTS = list(yaml.safe_load_all((CONF / "kubernetes.yaml").read_text()))
VERSION = kubernetes_validate.latest_version()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one["kind"])
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


def unit() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(CONF / "archiver.service")
    return parsed


def test_the_unit_starts_a_command_that_exists() -> None:
    service = unit()["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0].endswith("/archiver")
    assert_arguments_exist(command[1:])
    assert service["RestartPreventExitStatus"] == "2"


def test_the_unit_leaves_java_to_path_and_ends_well_by_signals() -> None:
    text = (CONF / "archiver.service").read_text()
    settings = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any("JAVA_HOME" in line for line in settings), "no path of a JDK is the same on all systems"
    assert unit()["Service"]["SuccessExitStatus"].split() == ["130", "143"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (CONF / "archiver.service").read_text().replace("/opt/archiver/bin/archiver", "/bin/true")
    path = tmp_path / "archiver.service"
    path.write_text(text.replace("User=archiver", "User=root").replace("Group=archiver", "Group=root"))
    checked = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def assert_arguments_exist(arguments: list[str]) -> None:
    """The command line takes them: what is missed is the file."""
    known = [str(Path("nowhere.toml")) if each.endswith(".toml") else each for each in arguments]
    done = CliRunner().invoke(app, known)
    assert done.exit_code == 2
    assert "There is no configuration file here" in done.stderr


GROUPS = yaml.safe_load((CONF / "prometheus-alerts.yaml").read_text())["groups"]
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
    """The metrics of a process: by name, the names of their samples and their labels."""
    instruments = Instruments()
    play(Metering(instruments, Health(stalled_after=60)))
    return {
        family.name: ({one.name for one in family.samples}, {label for one in family.samples for label in one.labels})
        for family in instruments.registry.collect()
    }


def expressions() -> list[tuple[str, str]]:
    """Every PromQL expression in conf/, with where it stands."""
    panels = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
    queries = [(each["name"], each["query"]) for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    return [(rule["alert"], rule["expr"]) for rule in ALERTS] + panels + queries


@pytest.mark.parametrize(("place", "expression"), expressions())
def test_expressions_name_metrics_and_labels_that_exist(place: str, expression: str) -> None:
    known = declared()
    samples = {sample: labels for names, labels in known.values() for sample in names}
    named = set(re.findall(r"\barchiver_\w+", expression))
    assert named, place
    assert named <= samples.keys()
    about = {label for each in named for label in samples[each]} | {"le"}
    matched = re.findall(r'(\w+)\s*=~?\s*"', expression)
    grouped = [label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")]
    assert {*matched, *grouped} <= about
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)


def test_counters_are_read_as_rates_and_all_metrics_are_shown() -> None:
    known = declared()
    text = "\n".join(expression for _, expression in expressions())
    for name, (samples, _) in known.items():
        shown = [sample for sample in samples if re.search(rf"\b{sample}\b", text)]
        if not name.startswith("archiver_process"):
            assert shown, f"{name} is on no panel and in no alert"
    for expression in (expression for place, expression in expressions() if place != "Offsets recorded as lost"):
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
        told = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert told <= {label for each in re.findall(r"\barchiver_\w+", rule["expr"]) for label in labels[each]}
    text = "\n".join(rule["expr"] for rule in ALERTS)
    assert {name for name in IMPORTANT if name in text} == IMPORTANT


def test_errors_that_alerts_name_exist() -> None:
    (rule,) = (rule for rule in ALERTS if rule["alert"] == "ArchiverNeedsAPerson")
    (pattern,) = re.findall(r'error=~"([^"]+)"', rule["expr"])
    known = {name for module in (archiver.errors, catalog.errors) for name in vars(module)}
    for each in pattern.split("|"):
        assert any(re.fullmatch(each, name) for name in known), each


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["source", "topic"]
