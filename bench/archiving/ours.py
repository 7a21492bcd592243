"""The archiver."""

from __future__ import annotations

from values.written_orders import FILES, Format, schema_text, section

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.task.work import MODULES
from archiving.profiling_engine import ProfilingEngine
from archiving.side import SLOTS, Setting, Side
from tests.support.servers.stack import Stack


class Ours(Side):
    def __init__(self, setting: Setting, format_: Format = "protobuf") -> None:
        super().__init__(setting)
        self.name = "archiver" if format_ == "protobuf" else f"archiver, {format_}"
        self._stack = Stack(setting.endpoints, setting.folder)
        schema = setting.folder / FILES[format_]
        schema.write_bytes(schema_text(format_))
        self._section = section(format_, str(schema))
        self._engine = ProfilingEngine.start({"master": SLOTS}, preloaded=(*MODULES, "archiving.profile"))
        self._last: JobReport | None = None

    def archive(self, topic: str) -> int:
        self._engine.seconds.clear()
        config = load_config(self._stack.config({topic: {"value": self._section}}))
        report = ArchiveJob(config, (topic,), engine=self._engine).run_once()
        if not report.succeeded:
            raise RuntimeError(f"the job failed: {report}")
        self._last = report
        return report.records

    def notes(self) -> dict[str, object]:
        if self._last is None:
            return {}
        metrics = self._last.topics[0].metrics
        names = ("fetch_seconds", "translate_seconds", "write_seconds", "upload_seconds", "file_bytes", "raw_values")
        return {name: round(getattr(metrics, name), 2) for name in names}

    def profile(self) -> dict[str, float]:
        return dict(self._engine.seconds)
