"""Check and translate the `[kafka]` options, by librdkafka's names.

Options without effect are refused: ignored `ssl.*` lines would be a security hole. Secrets are never shown.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args

from kafka.cluster import get_ip_port_afi
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from archiver.config.mistakes import sentence
from archiver.errors import ConfigError
from archiver.kafka.msk_iam import MECHANISM, PROFILE, REGION, MskIdentity, msk_identity, msk_tokens
from archiver.kafka.oauth import OidcClient, OidcTokens, parse_extensions, tokens_of
from archiver.kafka.tls import tls_context
from archiver.kafka.token_callback import PROVIDER, CallbackTokens, callback_tokens

_HINTS: Final = {
    "group.": "offsets live in the table; there is no consumer group",
    "auto.offset.reset": "where a topic starts is `start_from` of its section",
    "enable.auto.": "offsets live in the table; there is no consumer group",
    "max.partition.fetch.bytes": "set fetch.max.bytes: a fetch asks for one partition",
    "fetch.message.max.bytes": "set fetch.max.bytes: a fetch asks for one partition",
    "metadata.broker.list": "set bootstrap.servers",
    "sasl.kerberos.": "supported are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and AWS_MSK_IAM",
    "sasl.oauthbearer.": (
        "tokens come by client credentials from sasl.oauthbearer.token.endpoint.url, or from sasl.token.provider"
    ),
    "ssl.keystore.": "set ssl.certificate.location and ssl.key.location, PEM files",
}
_ALIASES: Final = {"sasl.mechanisms": "sasl.mechanism", "request.timeout.ms": "socket.timeout.ms"}
_FRAME_OVERHEAD: Final = 512


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _addresses(value: object) -> object:
    if not isinstance(value, str):
        return value
    addresses = tuple(address.strip() for address in value.split(",") if address.strip())
    for address in addresses:
        try:
            host, port, _ = get_ip_port_afi(address.rpartition("://")[2])
        except ValueError:
            host, port = "", 0
        if not host or not 0 < port < 1 << 16:
            raise ValueError(f"{address!r} is not HOST:PORT")
    return addresses


def _extensions(value: str | None) -> str | None:
    parse_extensions(value or "")
    return value


SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]
Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]
Size = Annotated[int, Field(ge=1, lt=1 << 31)]


class KafkaOptions(BaseModel):
    """Times are ms, sizes bytes. Picklable."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=False)

    bootstrap_servers: Annotated[tuple[str, ...], BeforeValidator(_addresses)] = Field(
        alias="bootstrap.servers", min_length=1
    )
    client_id: str = Field(default="archiver", alias="client.id", min_length=1)
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] = Field(
        default="use_all_dns_ips", alias="client.dns.lookup"
    )
    isolation_level: Literal["read_committed"] = Field(default="read_committed", alias="isolation.level")

    security_protocol: Annotated[Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"], BeforeValidator(_lower)] = (
        Field(default="plaintext", alias="security.protocol")
    )
    sasl_mechanism: Annotated[SaslMechanism | None, BeforeValidator(_upper)] = Field(
        default=None, alias="sasl.mechanism"
    )
    sasl_username: str | None = Field(default=None, alias="sasl.username")
    sasl_password: SecretStr | None = Field(default=None, alias="sasl.password")
    oauth_method: Annotated[Literal["oidc"] | None, BeforeValidator(_lower)] = Field(
        default=None, alias="sasl.oauthbearer.method"
    )
    oauth_endpoint: str | None = Field(
        default=None,
        alias="sasl.oauthbearer.token.endpoint.url",
        pattern=r"^https?://\S+$",
        description="an address: write https://HOST/PATH",
    )
    oauth_client_id: str | None = Field(default=None, alias="sasl.oauthbearer.client.id", min_length=1)
    oauth_client_secret: SecretStr | None = Field(default=None, alias="sasl.oauthbearer.client.secret")
    oauth_scope: str | None = Field(default=None, alias="sasl.oauthbearer.scope")
    oauth_extensions: Annotated[str | None, AfterValidator(_extensions)] = Field(
        default=None, alias="sasl.oauthbearer.extensions"
    )
    token_provider: str | None = Field(
        default=None,
        alias=PROVIDER,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="a function: write MODULE:FUNCTION",
    )
    aws_region: str | None = Field(
        default=None,
        alias=REGION,
        pattern=r"^[a-z]+(-[a-z]+)+-\d+$",
        description="an AWS region, such as eu-west-1",
    )
    aws_profile: str | None = Field(default=None, alias=PROFILE, min_length=1)
    https_ca_location: str | None = Field(default=None, alias="https.ca.location")
    ssl_ca_location: str | None = Field(default=None, alias="ssl.ca.location")
    ssl_certificate_location: str | None = Field(default=None, alias="ssl.certificate.location")
    ssl_key_location: str | None = Field(default=None, alias="ssl.key.location")
    ssl_key_password: SecretStr | None = Field(default=None, alias="ssl.key.password")
    ssl_verify: bool = Field(default=True, alias="enable.ssl.certificate.verification")
    ssl_endpoint_identification: Annotated[Literal["https", "none"], BeforeValidator(_lower)] = Field(
        default="https", alias="ssl.endpoint.identification.algorithm"
    )

    connect_timeout: Milliseconds = Field(default=10_000, alias="socket.connection.setup.timeout.ms")
    request_timeout: Milliseconds = Field(default=30_000, alias="socket.timeout.ms")
    max_idle: Milliseconds = Field(default=540_000, alias="connections.max.idle.ms")
    reconnect_backoff: Milliseconds = Field(default=50, alias="reconnect.backoff.ms")
    reconnect_backoff_max: Milliseconds = Field(default=1_000, alias="reconnect.backoff.max.ms")
    retry_backoff: Milliseconds = Field(default=100, alias="retry.backoff.ms")
    retry_backoff_max: Milliseconds = Field(default=1_000, alias="retry.backoff.max.ms")
    fetch_wait: Milliseconds = Field(default=500, alias="fetch.wait.max.ms")
    fetch_bytes: Size = Field(default=4 << 20, alias="fetch.max.bytes")
    receive_bytes: Size = Field(default=1 << 30, alias="receive.message.max.bytes")

    @model_validator(mode="after")
    def _security_is_whole(self) -> Self:
        password: dict[str, object] = {"sasl.username": self.sasl_username, "sasl.password": self.sasl_password}
        oauth: dict[str, object] = {
            "sasl.oauthbearer.method": self.oauth_method,
            "sasl.oauthbearer.token.endpoint.url": self.oauth_endpoint,
            "sasl.oauthbearer.client.id": self.oauth_client_id,
            "sasl.oauthbearer.client.secret": self.oauth_client_secret,
        }
        optional: dict[str, object] = {
            "sasl.oauthbearer.scope": self.oauth_scope,
            "https.ca.location": self.https_ca_location,
        }
        extensions: dict[str, object] = {"sasl.oauthbearer.extensions": self.oauth_extensions}
        function: dict[str, object] = {PROVIDER: self.token_provider}
        iam: dict[str, object] = {REGION: self.aws_region, PROFILE: self.aws_profile}
        by_token = self.sasl_mechanism == "OAUTHBEARER"
        by_function = by_token and self.token_provider is not None
        identity = function if by_function else oauth if by_token else {} if self.uses_iam else password
        sasl: dict[str, object] = {"sasl.mechanism": self.sasl_mechanism, **identity}
        tls: dict[str, object] = {
            "ssl.ca.location": self.ssl_ca_location,
            "ssl.certificate.location": self.ssl_certificate_location,
            "ssl.key.location": self.ssl_key_location,
            "ssl.key.password": self.ssl_key_password,
        }
        missing = [name for name, value in sasl.items() if value is None]
        if self.uses_sasl and missing:
            raise ValueError(f"security.protocol {self.security_protocol} needs {', '.join(missing)}")
        if self.uses_iam and self.security_protocol == "sasl_plaintext":
            raise ValueError(f"sasl.mechanism {MECHANISM} needs security.protocol sasl_ssl")
        unused = password if by_token else oauth | optional | extensions | function
        unused |= oauth | optional if by_function else {}
        unused |= password if self.uses_iam else iam
        unused |= {} if self.uses_sasl else sasl | optional | extensions | iam
        unused |= {} if self.uses_tls else tls
        if idle := [name for name, value in unused.items() if value is not None]:
            beside = f" and {PROVIDER}" if by_function and self.uses_sasl else ""
            raise ValueError(f"{', '.join(idle)} has no effect with {self._kind}{beside}")
        if (self.ssl_key_location is None) != (self.ssl_certificate_location is None):
            raise ValueError("ssl.certificate.location and ssl.key.location go together")
        return self

    @model_validator(mode="after")
    def _frames_fit(self) -> Self:
        if self.fetch_bytes + _FRAME_OVERHEAD > self.receive_bytes:
            raise ValueError(
                f"receive.message.max.bytes must be at least fetch.max.bytes + {_FRAME_OVERHEAD}: "
                f"{self.receive_bytes} < {self.fetch_bytes + _FRAME_OVERHEAD}"
            )
        return self

    @property
    def _kind(self) -> str:
        mechanism = f" and sasl.mechanism {self.sasl_mechanism}" if self.uses_sasl else ""
        return f"security.protocol {self.security_protocol}{mechanism}"

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("sasl")

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("ssl")

    @property
    def uses_iam(self) -> bool:
        return self.sasl_mechanism == MECHANISM

    def client_configuration(self) -> dict[str, Any]:
        """For kafka-python. Raises `ConfigError` for an unreadable file or incomplete AWS identity."""
        return {
            "bootstrap_servers": list(self.bootstrap_servers),
            "client_id": self.client_id,
            "client_dns_lookup": self.client_dns_lookup,
            "security_protocol": self.security_protocol.upper(),
            "ssl_context": self._tls(),
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": None if self.sasl_password is None else self.sasl_password.get_secret_value(),
            "sasl_oauth_token_provider": self._tokens(),
            "socket_connection_setup_timeout_ms": self.connect_timeout,
            "socket_connection_setup_timeout_max_ms": self.connect_timeout,
            "request_timeout_ms": self.request_timeout,
            "connections_max_idle_ms": self.max_idle,
            "reconnect_backoff_ms": self.reconnect_backoff,
            "reconnect_backoff_max_ms": self.reconnect_backoff_max,
            "receive_message_max_bytes": self.receive_bytes,
        }

    def msk_identity(self) -> MskIdentity | None:
        """Raises `ConfigError` if the region or the profile is unknown."""
        if not self.uses_iam:
            return None
        return msk_identity(self.bootstrap_servers, region=self.aws_region, profile=self.aws_profile)

    def token_callback(self) -> CallbackTokens | None:
        """For librdkafka. Raises `ConfigError` for an unknown function, or as `msk_identity`."""
        if (identity := self.msk_identity()) is not None:
            return msk_tokens(identity)
        return None if self.token_provider is None else callback_tokens(self.token_provider, self.oauth_extensions)

    def _tokens(self) -> OidcTokens | CallbackTokens | MskIdentity | None:
        if self.uses_iam:
            return self.msk_identity()
        if self.token_provider is not None:
            return self.token_callback()
        if self.oauth_endpoint is None or self.oauth_client_id is None or self.oauth_client_secret is None:
            return None
        client = OidcClient(
            endpoint=self.oauth_endpoint,
            client_id=self.oauth_client_id,
            client_secret=self.oauth_client_secret.get_secret_value(),
            scope=self.oauth_scope,
            extensions=self.oauth_extensions,
            ca=self.https_ca_location,
        )
        return tokens_of(client)

    def _tls(self) -> ssl.SSLContext | None:
        if not self.uses_tls:
            return None
        return tls_context(
            ca=self.ssl_ca_location,
            certificate=self.ssl_certificate_location,
            key=self.ssl_key_location,
            key_password=None if self.ssl_key_password is None else self.ssl_key_password.get_secret_value(),
            verify=self.ssl_verify,
            check_hostname=self.ssl_endpoint_identification == "https",
        )


def parse_kafka_options(options: Mapping[str, str]) -> KafkaOptions:
    """Raises a ConfigError that names all wrong or unsupported options."""
    plain = dict(options)
    for alias, name in _ALIASES.items():
        if alias in plain:
            if name in plain:
                raise ConfigError(f"{alias} and {name} mean the same; give one of them", options=(alias, name))
            plain[name] = plain.pop(alias)
    try:
        return KafkaOptions.model_validate(plain)
    except ValidationError as error:
        complaints = error.errors(include_url=False, include_input=False)
        options_named = tuple(str(complaint["loc"][0]) for complaint in complaints if complaint["loc"])
        message = "; ".join(_complaint(complaint, plain) for complaint in complaints)
        raise ConfigError(message, section="kafka", options=options_named) from None


def _complaint(each: ErrorDetails, options: Mapping[str, str]) -> str:
    if not each["loc"]:
        return sentence(each, None, None)
    name = str(each["loc"][0])
    if each["type"] != "extra_forbidden":
        field = next((field for field in KafkaOptions.model_fields.values() if field.alias == name), None)
        is_secret = field is not None and SecretStr in get_args(field.annotation)
        return f"{name}: {sentence(each, field, options.get(name), is_secret=is_secret)}"
    hint = next((hint for prefix, hint in _HINTS.items() if name.startswith(prefix)), None)
    return f"{name} is not supported" + (f" ({hint})" if hint else "")
