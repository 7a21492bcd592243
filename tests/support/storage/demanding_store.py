"""A store in memory that speaks some S3, and refuses requests as policies and stores do.

Its refusals are AWS's (docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html); for checksums see
aws/aws-sdk-js-v3#6810 (501), rustfs/rustfs#3506 (500) and developers.cloudflare.com/r2/api/s3/api.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.servers.serving import serving

_SIGNER = re.compile(r"Credential=([^/]+)/")
SSE = "x-amz-server-side-encryption"
KMS_KEY = "x-amz-server-side-encryption-aws-kms-key-id"
_CHECKSUM_HEADERS = ("x-amz-sdk-checksum-algorithm", "x-amz-trailer")
DENY = (
    "User: arn:aws:iam::1:user/archiver is not authorized to perform: s3:PutObject on resource: "
    '"arn:aws:s3:::lake/x" with an explicit deny in a resource-based policy'
)


@dataclass(slots=True)
class StoredObject:
    data: bytes
    headers: dict[str, str]
    parts: int = 0


@dataclass(slots=True)
class Demands:
    """Refuses writes without this encryption, and checksums."""

    encryption: str | None = None
    kms_key: str | None = None
    checksum_status: int | None = None

    def refusal(self, command: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes] | None:
        """`headers` have lower-case names."""
        query = parse_qs(urlsplit(path).query, keep_blank_values=True)
        begins = (command == "PUT" and "partNumber" not in query) or "uploads" in query
        checked = {name for name in headers if name.startswith("x-amz-checksum") or name in _CHECKSUM_HEADERS}
        if self.checksum_status is not None and checked - {"x-amz-checksum-mode"} and command in {"PUT", "POST"}:
            code = {501: "NotImplemented", 400: "InvalidArgument", 500: "InternalError"}[self.checksum_status]
            return self.checksum_status, _error(code, "A header you provided implies functionality that is not there")
        given = headers.get(SSE), headers.get(KMS_KEY)
        if begins and self.encryption is not None and given != (self.encryption, self.kms_key):
            return 403, _error("AccessDenied", DENY)
        return None


def _error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


@dataclass(slots=True)
class _Upload:
    headers: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


class DemandingStore(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, demands: Demands) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.demands = demands
        self.objects: dict[str, StoredObject] = {}
        self.uploads: dict[str, _Upload] = {}
        self.refused: list[str] = []
        self.keys: set[tuple[str, str | None]] = set()
        self.lock = threading.Lock()

    @property
    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.server_port}",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: DemandingStore

    def handle_any(self) -> None:
        data = self._body()
        parts = urlsplit(self.path)
        name, query = unquote(parts.path)[1:], parse_qs(parts.query, keep_blank_values=True)
        headers = {key.lower(): value for key, value in self.headers.items()}
        if match := _SIGNER.search(headers.get("authorization", "")):
            self.server.keys.add((match[1], headers.get("x-amz-security-token")))
        if (refusal := self.server.demands.refusal(self.command, self.path, headers)) is not None:
            self.server.refused.append(f"{self.command} {refusal[0]}")
            self._answer(*refusal)
        else:
            with self.server.lock:
                self._serve(name, query, headers, data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - the library's names

    def _serve(self, name: str, query: dict[str, list[str]], headers: dict[str, str], data: bytes) -> None:
        store = self.server
        match self.command:
            case "POST" if "uploads" in query:
                store.uploads[name] = _Upload(headers)
                self._answer(
                    200,
                    f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                    f"<Bucket>b</Bucket><Key>k</Key></InitiateMultipartUploadResult>".encode(),
                )
            case "PUT" if "partNumber" in query:
                store.uploads[name].parts[int(query["partNumber"][0])] = data
                self._answer(200)
            case "POST" if "uploadId" in query:
                upload = store.uploads.pop(name)
                whole = b"".join(upload.parts[number] for number in sorted(upload.parts))
                store.objects[name] = StoredObject(whole, upload.headers, len(upload.parts))
                self._answer(
                    200,
                    b"<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket>"
                    b'<Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>',
                )
            case "PUT":
                store.objects[name] = StoredObject(data, headers)
                self._answer(200)
            case "DELETE":
                store.objects.pop(name, None)
                self._answer(204)
            case "GET" if "list-type" in query:
                self._answer(
                    200, b"<ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"
                )
            case _ if name not in store.objects:
                self._answer(404, _error("NoSuchKey", "no such key"))
            case "HEAD":
                self._answer(200, length=len(store.objects[name].data))
            case _:
                whole = store.objects[name].data
                first, _, last = headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
                chosen = whole[int(first) : int(last) + 1 if last else None]
                self._answer(206 if "range" in headers else 200, chosen)

    def _body(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return data
        plain = b""
        while data:
            head, _, rest = data.partition(b"\r\n")
            size = int(head.partition(b";")[0], 16)
            if not size:
                break
            plain, data = plain + rest[:size], rest[size + 2 :]
        return plain

    def _answer(self, status: int, body: bytes = b"", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Sat, 28 Nov 2026 12:00:00 GMT")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def demanding_store(demands: Demands) -> Iterator[DemandingStore]:
    with serving(DemandingStore(demands)) as store:
        yield store
