"""SaslHandshake and SaslAuthenticate."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from archiver.errors import AuthenticationFailed, BadRequest
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Client, Request, Service
from archiver.serve.security import Shaken

_ERRORS: Final = {
    Shaken.BEGUN: ErrorCode.none,
    Shaken.UNKNOWN_MECHANISM: ErrorCode.unsupported_sasl_mechanism,
    Shaken.OUT_OF_PLACE: ErrorCode.illegal_sasl_state,
}
_NAME: Final = 64
_FAILED: Final = "authentication failed: the credentials are unknown, wrong or too old"


async def sasl_handshake(_service: Service, request: Request) -> Values:
    """After version 0, messages without a request header follow."""
    login = request.client.login
    shaken = login.handshake(request.body.mechanism, is_raw=request.version == 0)
    if shaken is not Shaken.BEGUN:
        why = f"it can't authenticate with {request.body.mechanism[:40]!r}: {shaken.name.lower()}"
        request.client.closing_log.write(request.client.address, why)
    return {"error_code": _ERRORS[shaken], "mechanisms": login.mechanisms}


async def sasl_authenticate(service: Service, request: Request) -> Values:
    login = request.client.login
    if not login.is_exchanging:
        login.is_over = login.access is None
        text = "there is nothing to authenticate: begin with SaslHandshake"
        return {"error_code": ErrorCode.illegal_sasl_state, "error_message": text, "auth_bytes": b""}
    user = login.user_in(request.body.auth_bytes)
    try:
        async with service.attempts.one(request.client.network, user):
            granted = await login.authenticate(request.body.auth_bytes)
    except AuthenticationFailed as error:
        _failed(request.client, user, error)
        return {"error_code": ErrorCode.sasl_authentication_failed, "error_message": _FAILED, "auth_bytes": b""}
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "auth_bytes": granted.answer,
        "session_lifetime": int(granted.seconds * 1000),
    }


async def raw_step(service: Service, client: Client, message: bytes) -> bytes:
    """Raises BadRequest if authentication fails."""
    user = client.login.user_in(message)
    try:
        async with service.attempts.one(client.network, user):
            return (await client.login.authenticate(message)).answer
    except AuthenticationFailed as error:
        _failed(client, user, error)
        raise BadRequest(_FAILED) from error


def _failed(client: Client, user: str | None, error: AuthenticationFailed) -> None:
    named = f" as {user[:_NAME]!r}" if user else ""
    client.closing_log.write(client.address, f"it isn't let in{named}: {error}")
