"""`archiver audit`: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.audit.acts import Appended
from archiver.cli.app import app
from archiver.storage.journal import TableJournal
from tests.support.archive.audit_trails import UUID_, Written, acts, appended

RUN = CliRunner()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    trail = Written.begin(tmp_path / "made")
    done = [*acts(6), appended(50)]
    trail.add(*done[:-1])
    trail.sign()
    trail.add(done[-1])
    journal = TableJournal(folder=(tmp_path / "journal" / "kafka.orders" / str(UUID_)).as_uri())
    for act in done:
        if isinstance(act, Appended):
            journal.keep_commit(str(act.commit_id), act.ranges)
    path = tmp_path / "journal" / "audit" / "kafka.orders" / str(UUID_)
    path.parent.mkdir(parents=True)
    trail.path.rename(path)
    trail.path = path
    (tmp_path / "archiver.toml").write_text(
        f"""
        kafka."bootstrap.servers" = "127.0.0.1:1"
        catalog.uri = "http://127.0.0.1:1"
        registry.dsn = "postgresql://nobody@127.0.0.1:1/none"
        archive.journal = "{(tmp_path / "journal").as_uri()}"
        topics.orders = {{ table = "kafka.orders" }}
        topics.other = {{}}
        """
    )
    return trail


def run(tmp_path: Path, command: str, *arguments: str, json: bool = True) -> Result:
    options = [] if "--folder" in arguments or command == "keygen" else ["--config", str(tmp_path / "archiver.toml")]
    form = ["--json" if json else "--no-json"]
    return RUN.invoke(app, ["audit", command, *arguments, *options, *form])


def test_a_check_needs_no_server(tmp_path: Path, written: Written) -> None:
    key = str(tmp_path / "made" / "key.pem.pub")
    done = run(tmp_path, "check", "--public-key", key)
    assert done.exit_code == 0, done.output
    (trail,) = json.loads(done.stdout)["trails"]
    assert (trail["topic"], trail["entries"], trail["signed"], trail["unsigned"]) == ("orders", 7, 6, 1)
    shown = run(tmp_path, "check", "orders", "-k", key, json=False)
    assert "orders: 7 entries, 6 signed until 20" in shown.stdout
    assert "nobody could see if the 1 after them had once been more" in " ".join(shown.stdout.split())


def test_a_commit_that_the_journal_lost_is_named(tmp_path: Path, written: Written) -> None:
    commits = sorted((tmp_path / "journal" / "kafka.orders").glob("*/commit-*"))
    commits[1].unlink()
    done = run(tmp_path, "check")
    assert done.exit_code == 1
    (problem,) = json.loads(done.stdout)["trails"][0]["problems"]
    assert problem["kind"] == "unjournaled"
    assert commits[1].stem.removeprefix("commit-") in problem["text"]
    for commit in (commits[0], *commits[2:]):
        commit.unlink()
    (problem,) = json.loads(run(tmp_path, "check").stdout)["trails"][0]["problems"]
    assert "has none of the 5 commits" in problem["text"]


def test_what_is_wrong_is_named_and_the_exit_code_is_1(tmp_path: Path, written: Written) -> None:
    path = written.files("entry-*")[2]
    path.write_bytes(path.read_bytes().replace(b'"rows":10', b'"rows":11'))
    done = run(tmp_path, "check", json=False)
    assert done.exit_code == 1
    assert "broken: entry 4 doesn't follow entry 3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--max-age", "1d"], 2, "give the --public-key"),
        (["--folder", "nowhere"], 2, "no such folder"),
        (["--folder", "nowhere", "--registry"], 2, "without topics"),
        (["other"], 1, "no audit trail"),
        (["--public-key", __file__], 2, "no Ed25519 public key"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, written: Written, arguments: list[str], code: int, message: str) -> None:
    arguments = [argument.replace("nowhere", str(tmp_path / "nowhere")) for argument in arguments]
    done = run(tmp_path, "check", *arguments)
    assert (done.exit_code, message in done.output) == (code, True), done.output


def test_external_checkpoint_requires_its_trail(tmp_path: Path, written: Written) -> None:
    key, kept = str(tmp_path / "made" / "key.pem.pub"), tmp_path / "kept.json"
    kept.write_bytes(written.files("checkpoint-*")[0].read_bytes())
    assert run(tmp_path, "check", "-k", key, "--checkpoint", str(kept)).exit_code == 0
    for path in written.files("*"):
        path.unlink()
    cut = run(tmp_path, "check", "-k", key, "--checkpoint", str(kept), json=False)
    assert (cut.exit_code, "truncated: 6 entries were signed" in cut.output) == (1, True)
    written.path.rmdir()
    gone = run(tmp_path, "check", "-k", key, "--checkpoint", str(kept), json=False)
    assert (gone.exit_code, "whose trail was not found" in " ".join(gone.output.split())) == (2, True)


def test_entries_are_shown_and_selected(tmp_path: Path, written: Written) -> None:
    shown = run(tmp_path, "show", "orders", "--act", "append", "--limit", "2", "--from", "2020-01-01")
    assert [json.loads(line)["entry"]["seq"] for line in shown.stdout.splitlines()] == [6, 7]
    assert run(tmp_path, "show", "orders", "--to", "2020-01-01").stdout == ""
    output = run(tmp_path, "show", "orders", json=False)
    assert "ops@example.com on one" in " ".join(output.stdout.split())
    assert run(tmp_path, "show", "orders", "--from", "yesterday").exit_code == 2


def test_a_copy_is_checked_without_configuration(tmp_path: Path, written: Written) -> None:
    assert run(tmp_path, "export", "orders", str(tmp_path / "evidence")).exit_code == 0
    key = str(tmp_path / "made" / "key.pem.pub")
    assert run(tmp_path, "check", "--folder", str(tmp_path / "evidence"), "-k", key).exit_code == 0
    assert run(tmp_path, "export", "orders", str(tmp_path / "evidence")).exit_code == 2


def test_a_key_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "signing.pem"
    assert run(tmp_path, "keygen", str(path)).exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name("signing.pem.pub").read_text().startswith("-----BEGIN PUBLIC KEY-----")
    assert run(tmp_path, "keygen", str(path)).exit_code == 2
