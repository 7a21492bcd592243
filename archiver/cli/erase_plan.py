"""Erasures over several topics, with a certificate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.cli.error_output import print_error
from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.audit.signing import SigningKey
    from archiver.config import Config
    from archiver.terminal.output import Output
    from archiver.upkeep.consent import Consent
    from archiver.upkeep.erase.job import EraseOptions
    from archiver.upkeep.erase.plan import ErasurePlan, PlanReport
    from archiver.upkeep.erase.report import EraseEvent, EraseReport


def run_plan(
    loaded: Config,
    plan: ErasurePlan,
    output: Output[EraseEvent],
    *,
    options: EraseOptions,
    consent: Consent,
    certificate: Path | None,
    as_json: bool,
    shows: bool = False,
) -> bool:
    """Return whether all records are gone. `shows`: print a dry run's records.

    Raises ConfigError before any work if the certificate can't be signed or written.
    """
    from archiver.upkeep.erase.plan import ErasePlan

    key = None if certificate is None else _key(loaded, certificate)
    with output:
        report = ErasePlan(config=loaded, plan=plan, observer=output, options=options, consent=consent).run()
    for error in report.errors.values():
        print_error(error, as_json=as_json)
    if shows:
        show_records(loaded, report.reports)
    if certificate is not None and key is not None:
        _write(report, loaded, certificate, key, as_json=as_json)
    return report.succeeded


def run_finish(
    loaded: Config,
    topic: str,
    output: Output[EraseEvent],
    *,
    options: EraseOptions,
    certificate: Path,
    as_json: bool,
) -> bool:
    """Return whether all open erasures of the topic are finished.

    Raises ConfigError before any work if the certificate can't be signed or written.
    """
    from archiver.upkeep.erase.job import Erase
    from archiver.upkeep.erase.plan import ErasurePlan, PlanReport

    key = _key(loaded, certificate)
    with output:
        report = Erase(loaded, topic, None, output, options=options).run()
    _write(PlanReport(plan=ErasurePlan(erasures=()), reports=(report,)), loaded, certificate, key, as_json=as_json)
    return report.succeeded


def show_records(config: Config, reports: Iterable[EraseReport]) -> None:
    """As `archiver replay --decode` does."""
    from archiver.archive.topic_archive import open_archive
    from archiver.cli.replay_export import standard_output
    from archiver.upkeep.erase.shown_records import shown_records

    with standard_output() as stream:
        for report in reports:
            stream.writelines(shown_records(open_archive(config, report.topic, coerces=False), report.spans))


def _key(loaded: Config, certificate: Path) -> SigningKey:
    from archiver.audit.documents import check_place
    from archiver.audit.signing import MAKE_KEY, SigningKey
    from archiver.upkeep.erase.certificate import CERTIFICATE

    if loaded.audit.signing_key is None:
        raise ConfigError(
            f"a certificate is signed: make a key with `{MAKE_KEY}`, and set `signing_key` in [audit]",
            key="audit.signing_key",
        )
    check_place(certificate, CERTIFICATE)
    return SigningKey.load(loaded.audit.signing_key)


def _write(report: PlanReport, loaded: Config, path: Path, key: SigningKey, *, as_json: bool) -> None:
    from archiver.audit.trail import author
    from archiver.terminal.console import TextConsole
    from archiver.terminal.json_lines import write_line
    from archiver.upkeep.erase.certificate import write_certificate

    files = write_certificate(report, path, key, author(loaded.audit))
    if as_json:
        write_line("certificate", files=list(files), key_id=key.id, succeeded=report.succeeded)
    else:
        TextConsole().print(
            f"The certificate is in {files[0]}, signed with key {key.id}; the page for people is {files[1]}"
        )
