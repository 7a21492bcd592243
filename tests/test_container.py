"""The Containerfile and the compose file."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.local.stack import PARTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMAGE = f"archiver:{PROJECT['version']}"
CONTAINERFILE = ROOT / "Containerfile"
COMPOSE = (ROOT / "conf" / "compose.yaml").read_text()
DEPLOYMENT = next(
    document
    for document in yaml.safe_load_all((ROOT / "conf" / "kubernetes.yaml").read_text())
    if document["kind"] == "Deployment"
)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def read_stages() -> list[list[Step]]:
    """Omit everything before the first `FROM`."""
    lines = [line for line in CONTAINERFILE.read_text().splitlines() if not line.startswith("#")]
    stages: list[list[Step]] = []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        step = Step(*line.strip().split(maxsplit=1))
        if step.name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(step)
    return stages


BUILD, FINAL = read_stages()


def only(name: str, steps: list[Step] = FINAL) -> Step:
    (match,) = [step for step in steps if step.name == name]
    return match


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for word in only("ENV").words)


def test_both_stages_have_the_base_that_can_be_chosen() -> None:
    assert re.search(r"^ARG BASE=docker\.io/library/debian:bookworm-slim$", CONTAINERFILE.read_text(), re.MULTILINE)
    assert {stage[0].words[0] for stage in (BUILD, FINAL)} == {"${BASE}"}


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert patterns[0] == "*"
    for step in (step for step in BUILD if step.name == "COPY"):
        for source in step.words[:-1]:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, pattern[1:]) for pattern in patterns if pattern[0] == "!"), source
    assert [step.words[0] for step in FINAL if step.name == "COPY"] == ["--from=build"]


def test_every_package_is_copied() -> None:
    copied = {word for step in BUILD if step.name == "COPY" for word in step.words[:-1]}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages == {"archiver", "catalog", "schema_mapping"}
    assert packages <= copied


def test_only_pinned_packages_are_installed() -> None:
    commands = [part for step in BUILD if step.name == "RUN" for part in step.text.split("&&") if "pip " in part]
    installs = [command for command in commands if " install " in command]
    assert len(installs) == 3
    for command in installs:
        assert "--require-hashes" in command or "--no-deps /wheels/" in command, command
    run = pins("run")
    assert pins("image") < run | pins("test"), "the versions of the image are tested ones"
    assert pins("build") < run


def pins(name: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if "==" in line}


def test_the_image_has_all_that_the_project_needs() -> None:
    pinned = {pin.split("==")[0].replace("_", "-").lower() for pin in pins("image")}
    needed = {re.split(r"[\[<>=,;\s]", dependency)[0].lower() for dependency in PROJECT["dependencies"]}
    assert needed <= pinned


def test_the_final_stage_has_no_compiler_and_ends_as_a_user() -> None:
    installed = " ".join(step.text for step in FINAL if step.name == "RUN")
    assert not re.search(r"\b(gcc|g\+\+|clang|cc|make|build-essential|python3-dev|pip)\b", installed)
    after = [step.name for step in FINAL[FINAL.index(only("USER")) :]]
    assert "RUN" not in after
    user, group = map(int, only("USER").text.split(":"))
    assert min(user, group) > 0
    assert f"--uid {user}" in installed
    assert f"--gid {group}" in installed


def test_folders_that_are_written_are_the_volume() -> None:
    (volume,) = only("VOLUME").words
    environment = variables()
    assert environment["TMPDIR"] == volume
    assert environment["SPARK_LOCAL_DIRS"].startswith(f"{volume}/")
    assert only("WORKDIR", [step for step in FINAL if step.name == "WORKDIR"]).text == volume
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


def test_the_labels_say_the_version_and_licence() -> None:
    labels = {name.rpartition(".")[2]: value for name, value in (word.split("=", 1) for word in only("LABEL").words)}
    assert labels["version"] == PROJECT["version"]
    assert labels["licenses"] == PROJECT["license"]


def test_the_command_exists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry, command = (json.loads(only(name).text) for name in ("ENTRYPOINT", "CMD"))
    assert entry[:2] == ["tini", "--"]
    assert entry[2] in PROJECT["scripts"]
    assert_reads_the_configuration(command, monkeypatch, tmp_path)
    compose = yaml.safe_load(COMPOSE)["services"]["archiver"]
    assert_reads_the_configuration(compose["command"], monkeypatch, tmp_path)


def assert_reads_the_configuration(command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the file that the image's variable names is missing."""
    name = "ARCHIVER_CONFIG"
    monkeypatch.setenv(name, str(tmp_path / Path(variables()[name]).name))
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "There is no configuration file here" in done.stderr


def test_the_health_check_asks_the_port_that_is_listened_on() -> None:
    port = variables()["ARCHIVER__METRICS__LISTEN"].rpartition(":")[2]
    assert only("EXPOSE").text == port
    assert f"127.0.0.1:{port}/health/live" in only("HEALTHCHECK").text


def test_kubernetes_runs_this_image_as_its_user() -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"].rpartition("/")[2] == IMAGE
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['fsGroup']}" == only("USER").text
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {"/spool", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_linter_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, CONTAINERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_missing_builder_is_told() -> None:
    bash = shutil.which("bash")
    assert bash
    folders = {str(Path(tool).parent) for tool in map(shutil.which, ("dirname", "sed")) if tool}
    done = subprocess.run(
        [bash, ROOT / "scripts" / "image"],
        env={"PATH": ":".join(sorted(folders)), "BUILDER": "docker", "DOCKER_HOST": "unix:///nowhere.sock"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "docker info" in done.stderr


def services() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
    return content


def test_compose_takes_the_file() -> None:
    taken = PyCompose.from_yaml(COMPOSE)
    taken.validate()
    assert set(taken.service_names()) == {"archiver", "kafka", "postgres", "lake"}


def test_the_schema_of_compose_is_asked() -> None:
    with pytest.raises(ValueError, match="read_onyl"):
        PyCompose.from_yaml(COMPOSE.replace("read_only", "read_onyl"))


def test_the_services_are_healthy_before_the_archiver_starts() -> None:
    composed = services()
    waited_for = composed["archiver"]["depends_on"]
    assert set(waited_for) == set(composed) - {"archiver"}
    for name, condition in waited_for.items():
        assert condition == {"condition": "service_healthy"}
        assert "healthcheck" in composed[name]
    assert composed["archiver"]["read_only"]
    assert composed["archiver"]["cap_drop"] == ["ALL"]
    for service in composed.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_versions_are_those_of_the_embedded_stack() -> None:
    versions = {part.name: part.version for part in PARTS}
    composed = services()
    assert composed["archiver"]["image"] == IMAGE
    assert composed["kafka"]["image"] == f"apache/kafka:{versions['kafka']}"
    assert composed["lake"]["image"] == f"chrislusf/seaweedfs:{versions['seaweedfs']}"
    assert composed["postgres"]["image"] == f"postgres:{versions['postgres'].split('.')[0]}"


def test_the_configuration_of_compose_loads_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    composed = services()
    for name, text in composed["archiver"]["environment"].items():
        monkeypatch.setenv(name, interpolated(text))
    loaded = load_config(ROOT / "conf" / "compose.toml")
    listeners = composed["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert "INSIDE://" + loaded.kafka["bootstrap.servers"] in listeners
    lake, store = composed["lake"]["command"], composed["lake"]["environment"]
    assert loaded.catalog["uri"] == f"http://lake:{option('s3.port.iceberg', lake)}"
    assert loaded.catalog["s3.endpoint"] == option("s3.externalUrl", lake) == f"http://lake:{option('s3.port', lake)}"
    assert loaded.catalog["warehouse"] == f"s3://{option('tableBucket', lake)}"
    assert str(loaded.archive.journal).startswith(f"s3://{option('bucket', lake)}/")
    keys = [interpolated(store[name]) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    assert loaded.catalog["credential"] == ":".join(keys)
    assert [loaded.catalog["s3.access-key-id"], loaded.catalog["s3.secret-access-key"]] == keys
    database = {name: interpolated(text) for name, text in composed["postgres"]["environment"].items()}
    user, password = database["POSTGRES_USER"], database["POSTGRES_PASSWORD"]
    assert loaded.registry.dsn == f"postgresql://{user}:{password}@postgres:5432/{database['POSTGRES_DB']}"
    assert loaded.topic("anything").name == "anything"


def interpolated(text: str) -> str:
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def option(name: str, command: list[str]) -> str:
    return next(word.partition("=")[2] for word in command if word.startswith(f"-{name}="))
