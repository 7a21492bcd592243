"""Reports: the root covers records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from archiver.audit.documents import check_place
from archiver.audit.signing import SigningKey
from archiver.errors import ConfigError, SignatureInvalid
from archiver.upkeep.verify.document import REPORT, check_report, write_report
from archiver.upkeep.verify.findings import Fault, FaultKind, Gap, GapKind, Proof, Proven
from archiver.upkeep.verify.report import VerifiedTopic, VerifyReport, partitions_of


def proven(start: int, end: int, digest: int, proof: Proof = Proof.DIGEST) -> Proven:
    return Proven(
        partition=0, start_offset=start, end_offset=end, rows=end - start, digest=f"{digest:032x}", proof=proof
    )


def gap(start: int, end: int, kind: GapKind = GapKind.NO_RECORD) -> Gap:
    return Gap(kind=kind, partition=0, start_offset=start, end_offset=end, count=end - start)


def report(*spans: Proven, faults: tuple[Fault, ...] = ()) -> VerifyReport:
    topic = VerifiedTopic(
        topic="orders|x",
        table="kafka.orders",
        cluster_id="c",
        topic_id="t",
        table_uuid="u",
        snapshot_id=1,
        sources={"catalog": "http://c"},
        partitions=partitions_of({0: 30}, spans, [gap(3, 4), gap(4, 6), gap(20, 30, GapKind.LOST)]),
        faults=faults,
        notes=("a note",),
    )
    return VerifyReport(topics=(topic,))


def keys(folder: Path) -> tuple[SigningKey, Path]:
    key = Ed25519PrivateKey.generate()
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = folder / "public.pem"
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return SigningKey.load(folder / "key.pem"), public


def test_root_is_independent_of_record_grouping() -> None:
    halves = report(proven(0, 10, 5), proven(10, 20, 7)).topics[0]
    whole = report(proven(0, 20, 12)).topics[0]
    (partition,) = halves.partitions
    assert [(span.start_offset, span.end_offset, span.rows) for span in partition.proven] == [(0, 20, 20)]
    assert [(span.kind, span.start_offset, span.end_offset) for span in partition.gaps] == [
        (GapKind.NO_RECORD, 3, 6),
        (GapKind.LOST, 20, 30),
    ]
    assert halves.root == whole.root
    assert halves.root != report(proven(0, 20, 13)).topics[0].root
    assert halves.root != report(proven(0, 10, 5)).topics[0].root


def test_a_report_is_intact_until_something_in_it_changes(tmp_path: Path) -> None:
    key, public = keys(tmp_path)
    path = tmp_path / "report.json"
    fault = Fault(kind=FaultKind.DAMAGED, message="a | b", file="f", partition=0, start_offset=1, end_offset=2)
    write_report(report(proven(0, 10, 5), faults=(fault,)), path, key)
    checked = check_report(path, public)
    assert (checked.key_id, checked.report["succeeded"]) == (key.id, False)
    assert checked.page == path.with_name("report.json.md").read_text()
    html = path.with_name("report.json.html").read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert "<h1>Verification of archived topics</h1>" in html
    assert "<td>records proven</td>" in html
    assert "| damaged | partition 0 [1, 2) f | a \\| b |" in checked.page
    text = path.read_text()
    for old, new in (('"succeeded": false', '"succeeded": true'), ('"rows": 10', '"rows": 11'), ("a note", "no note")):
        path.write_text(text.replace(old, new))
        assert path.read_text() != text
        with pytest.raises(SignatureInvalid):
            check_report(path, public)
    path.write_text(text.replace('"rows": 10', '"rows": 11'))
    with pytest.raises(SignatureInvalid, match="root"):
        check_report(path, None)


def test_what_is_no_report_or_isnt_signed_is_told(tmp_path: Path) -> None:
    _, public = keys(tmp_path)
    path = tmp_path / "report.json"
    write_report(report(proven(0, 10, 5)), path, None)
    assert check_report(path, None).key_id is None
    with pytest.raises(SignatureInvalid, match="isn't signed"):
        check_report(path, public)
    for text in ("", "{}", "[]", json.dumps({"report": {"kind": "x", "format": 1}, "signature": None})):
        path.write_text(text)
        with pytest.raises((SignatureInvalid, ConfigError)):
            check_report(path, None)
    with pytest.raises(ConfigError, match="can't be read"):
        check_report(tmp_path / "none.json", None)
    with pytest.raises(ConfigError, match="can't be written"):
        check_place(tmp_path / "no" / "report.json", REPORT)
    with pytest.raises(ConfigError, match="can't be written"):
        check_place(tmp_path, REPORT)
