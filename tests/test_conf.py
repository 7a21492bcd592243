"""The files in conf/, by the schemas of those who read them; the configuration inside by our own loader."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config

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
    assert_arguments_exist(container["args"][1:])


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
