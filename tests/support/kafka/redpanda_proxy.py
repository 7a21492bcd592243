"""A proxy before Kafka that answers as Redpanda before 25.3 does, in what the archiver reads.

All of it is in `src/v/kafka/server/handlers` of redpanda-data/redpanda. The versions are in `metadata.h`, `fetch.h`,
`list_offsets.h` and so on: topics have no ids (they came with Metadata 12, redpanda#27629), and fetches no
last epoch. A later ApiVersions gets error 35 with the list (`api_versions.cc`). OffsetForLeaderEpoch repeats the
requested epoch beside the end of the newest one up to it (`offset_for_leader_epoch.cc`); Kafka names the epoch that it
found. ListOffsets takes each timestamp but -1 and -2 for a time (`list_offsets.cc`), so -4 gives the first offset.
"""

from __future__ import annotations

import socket
import socketserver
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

from tests.support.servers.serving import serving

_VERSIONS: Final = {
    ApiVersionsRequest: (0, 3),
    MetadataRequest: (0, 8),
    FetchRequest: (4, 11),
    ListOffsetsRequest: (0, 4),
    OffsetForLeaderEpochRequest: (0, 4),
    DescribeConfigsRequest: (0, 2),
    DescribeLogDirsRequest: (0, 1),
    DescribeProducersRequest: (0, 0),
}
_ENDS: Final = (-1, -2)
_UNSUPPORTED: Final = 35
_CORRELATION: Final = 4


class RedpandaProxy(socketserver.ThreadingTCPServer):
    """`fetched` are the bytes of answers to Fetch, `requests` are keys and versions."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.kafka = host, int(port)
        self.fetched = 0
        self.requests: set[tuple[int, int]] = set()
        super().__init__(("127.0.0.1", 0), _Connection)

    @property
    def options(self) -> dict[str, str]:
        return {"bootstrap.servers": f"127.0.0.1:{self.server_address[1]}"}

    def handle_error(self, *_: object) -> None:
        """Clients hang up."""

    def answer(self, kafka: BinaryIO, frame: bytes) -> bytes:
        key, version, correlation = struct.unpack_from(">hhi", frame)
        self.requests.add((key, version))
        if key == ApiVersionsRequest.API_KEY:
            is_known = version <= _VERSIONS[ApiVersionsRequest][1]
            body = _api_versions(0 if is_known else _UNSUPPORTED).encode(version if is_known else 0)
            return struct.pack(">i", correlation) + bytes(body)
        if key == ListOffsetsRequest.API_KEY:
            frame = _by_time(frame, version)
        _write(kafka, frame)
        answer = _read(kafka)
        assert answer is not None
        match key:
            case MetadataRequest.API_KEY:
                return self._here(answer, version)
            case OffsetForLeaderEpochRequest.API_KEY:
                return _repeated(frame, answer, version)
            case FetchRequest.API_KEY:
                self.fetched += len(answer)
        return answer

    def _here(self, answer: bytes, version: int) -> bytes:
        response = MetadataResponse.decode(answer[_CORRELATION:], version)
        for broker in response.brokers:
            broker.host, broker.port = "127.0.0.1", self.server_address[1]
        return answer[:_CORRELATION] + bytes(response.encode())


def _api_versions(error: int) -> Any:
    kinds = [
        ApiVersionsResponse.ApiVersion(api_key=kind.API_KEY, min_version=low, max_version=high)
        for kind, (low, high) in _VERSIONS.items()
    ]
    return ApiVersionsResponse(error_code=error, api_keys=kinds, throttle_time_ms=0)


def _by_time(frame: bytes, version: int) -> bytes:
    request = ListOffsetsRequest.decode(frame, version, header=True)
    for partition in (partition for topic in request.topics for partition in topic.partitions):
        if partition.timestamp not in _ENDS:
            partition.timestamp = max(0, partition.timestamp)
    return bytes(request.encode(header=True))


def _repeated(frame: bytes, answer: bytes, version: int) -> bytes:
    request = OffsetForLeaderEpochRequest.decode(frame, version, header=True)
    size = _CORRELATION + OffsetForLeaderEpochResponse.flexible_version_q(version)  # no tags
    response = OffsetForLeaderEpochResponse.decode(answer[size:], version)
    requested = {
        (topic.topic, partition.partition): partition.leader_epoch
        for topic in request.topics
        for partition in topic.partitions
    }
    for topic in response.topics:
        for end in topic.partitions:
            end.leader_epoch = requested[topic.topic, end.partition]
    return answer[:size] + bytes(response.encode())


def _read(stream: BinaryIO) -> bytes | None:
    size = stream.read(4)
    return stream.read(struct.unpack(">i", size)[0]) if len(size) == 4 else None


def _write(stream: BinaryIO, frame: bytes) -> None:
    stream.write(struct.pack(">i", len(frame)) + frame)
    stream.flush()


class _Connection(socketserver.StreamRequestHandler):
    server: RedpandaProxy

    def handle(self) -> None:
        with socket.create_connection(self.server.kafka) as upstream, upstream.makefile("rwb") as kafka:
            while (frame := _read(self.rfile)) is not None:
                _write(self.wfile, self.server.answer(kafka, frame))


@contextmanager
def redpanda_proxy(bootstrap_servers: str) -> Iterator[RedpandaProxy]:
    with serving(RedpandaProxy(bootstrap_servers)) as proxy:
        yield proxy
