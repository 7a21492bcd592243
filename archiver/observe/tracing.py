"""Sends spans as OTLP over HTTP, in batches, from its own thread. Spans that can't be sent are dropped, and logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Tracer

SERVICE = "kafka-iceberg-archiver"


@contextmanager
def tracer_to(endpoint: str, headers: Mapping[str, str], exporter: SpanExporter | None = None) -> Iterator[Tracer]:
    """A tracer whose spans go to `endpoint` (the whole URL, `…/v1/traces`), or to `exporter`; flushed at the end."""
    resource = Resource.create({"service.name": SERVICE, "service.version": version(SERVICE)})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    to = exporter or OTLPSpanExporter(endpoint=endpoint, headers=dict(headers))
    provider.add_span_processor(BatchSpanProcessor(to))
    try:
        yield provider.get_tracer("archiver")
    finally:
        provider.shutdown()
