"""A small AWS Security Token Service, which records requested roles.

Answers: docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html and API_AssumeRoleWithWebIdentity.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.serving import serving

KEY = "ASIAROLE"
TOKEN = "session-of-the-role"
_ANSWER = """<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>
<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/x/y</Arn><AssumedRoleId>AROA:y</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
<SessionToken>{token}</SessionToken><Expiration>2036-01-01T00:00:00Z</Expiration></Credentials>
</{action}Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{action}Response>"""
_REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>User is not authorized to perform: sts:AssumeRole</Message></Error>
<RequestId>1</RequestId></ErrorResponse>"""


@dataclass(slots=True)
class StsServer:
    url: str = ""
    refuses: bool = False
    requests: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def sts_server() -> Iterator[StsServer]:
    sts = StsServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            query = parse_qs(form or urlsplit(self.path).query)
            parameters = {name: values[0] for name, values in query.items()}
            sts.requests.append(parameters)
            text = _REFUSAL if sts.refuses else _ANSWER.format(action=parameters["Action"], key=KEY, token=TOKEN)
            self.send_response(403 if sts.refuses else 200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sts.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield sts
