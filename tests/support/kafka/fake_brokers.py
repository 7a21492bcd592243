"""Scripted brokers on real sockets, with kafka-python's messages."""

from __future__ import annotations

import socketserver
import struct
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from tests.support.servers.serving import serving

TOPIC_ID = uuid.UUID(int=7)
VERSIONS = {
    ApiVersionsRequest: (0, 3),
    FetchRequest: (4, 17),
    ListOffsetsRequest: (1, 9),
    MetadataRequest: (0, 12),
    OffsetForLeaderEpochRequest: (2, 4),
    FindCoordinatorRequest: (0, 6),
    OffsetFetchRequest: (1, 10),
    InitProducerIdRequest: (0, 5),
    AddPartitionsToTxnRequest: (0, 5),
    EndTxnRequest: (0, 5),
    ProduceRequest: (3, 12),
    SaslHandshakeRequest: (0, 1),
    SaslAuthenticateRequest: (0, 2),
}
REQUESTS = {request.API_KEY: request for request in VERSIONS}


@dataclass(slots=True)
class FakeCluster:
    """One partition. `answers` maps request classes to responses, None to hang up.

    `hanging` brokers never answer; after `last_words` they hang up. `asked` records (broker, request).
    """

    topic: str = "t"
    topic_id: uuid.UUID = TOPIC_ID
    leader: int = 0
    replicas: list[int] = field(default_factory=list)
    epoch: int = 3
    topic_error: int = 0
    throttle_ms: int = 0
    versions: dict[Any, tuple[int, int]] = field(default_factory=lambda: dict(VERSIONS))
    ports: list[int] = field(default_factory=list)
    answers: dict[Any, Callable[[int, Any], Any]] = field(default_factory=dict)
    hanging: set[int] = field(default_factory=set)
    last_words: set[Any] = field(default_factory=set)
    asked: list[tuple[int, str]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def options(self) -> dict[str, str]:
        return {
            "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.ports),
            "socket.connection.setup.timeout.ms": "1000",
            "socket.timeout.ms": "2000",
            "retry.backoff.ms": "10",
            "reconnect.backoff.ms": "10",
            "fetch.wait.max.ms": "10",
        }

    def answer(self, broker: int, request: Any) -> Any:
        self.asked.append((broker, type(request).__name__))
        if broker in self.hanging:
            self.stop.wait(30)
            return None
        if (scripted := self.answers.get(type(request))) is not None:
            return scripted(broker, request)
        match request:
            case ApiVersionsRequest():
                return self.api_versions()
            case MetadataRequest():
                return self.metadata(request)
        return None

    def asked_for(self, kind: Any) -> list[int]:
        return [broker for broker, name in self.asked if name == kind.__name__]

    def api_versions(self) -> Any:
        api = ApiVersionsResponse.ApiVersion
        keys = [
            api(api_key=kind.API_KEY, min_version=low, max_version=high) for kind, (low, high) in self.versions.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0)

    def metadata(self, request: Any) -> Any:
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(
            error_code=0,
            partition_index=0,
            leader_id=self.leader,
            leader_epoch=self.epoch,
            replica_nodes=self.replicas,
            isr_nodes=[],
            offline_replicas=[],
        )
        described = topic(
            error_code=self.topic_error,
            name=self.topic,
            topic_id=self.topic_id,
            is_internal=False,
            partitions=[partition],
        )
        broker = MetadataResponse.MetadataResponseBroker
        return MetadataResponse(
            throttle_time_ms=self.throttle_ms,
            brokers=[
                broker(node_id=node, host="127.0.0.1", port=port, rack=None) for node, port in enumerate(self.ports)
            ],
            cluster_id="fake",
            controller_id=0,
            topics=[described] if request.topics is None or request.topics else [],
        )


def fetched(records: bytes = b"", *, error: int = 0, end: int = 0, throttle_ms: int = 0, replica: int = -1) -> Any:
    """With `replica`, the leader redirects readers."""
    topic = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=0,
        aborted_transactions=[],
        preferred_read_replica=replica,
        records=records,
    )
    return FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=0,
        session_id=0,
        responses=[topic(topic="t", topic_id=TOPIC_ID, partitions=[partition])],
    )


def coordinator(node: int, *, error: int = 0) -> Any:
    return FindCoordinatorResponse(
        throttle_time_ms=0, error_code=error, error_message=None, node_id=node, host="127.0.0.1", port=1
    )


def listed(offset: int, *, error: int = 0) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse(
        partition_index=0, error_code=error, timestamp=-1, offset=offset, leader_epoch=0
    )
    return ListOffsetsResponse(throttle_time_ms=0, topics=[topic(name="t", partitions=[partition])])


@contextmanager
def fake_cluster(brokers: int = 2) -> Iterator[FakeCluster]:
    cluster = FakeCluster()
    with ExitStack() as stack:
        for number in range(brokers):
            server = stack.enter_context(serving(_Server(cluster, number)))
            cluster.ports.append(server.server_address[1])
        stack.callback(cluster.stop.set)
        yield cluster


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, cluster: FakeCluster, number: int) -> None:
        self.cluster = cluster
        self.number = number
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(struct.unpack(">i", size)[0])
            key, version = struct.unpack_from(">hh", frame)
            kind = REQUESTS[key]
            stream = BytesIO(frame)
            header = RequestHeader.decode(stream, flexible=kind.flexible_version_q(version))
            request = kind.decode(stream.read(), version=version)
            response = self.server.cluster.answer(self.server.number, request)
            if response is None:
                return
            response._header = None  # an answer given before carries its header still
            response.API_VERSION = version
            response.with_header(correlation_id=header.correlation_id)
            self.wfile.write(response.encode(header=True, framed=True))
            if kind in self.server.cluster.last_words:
                return
