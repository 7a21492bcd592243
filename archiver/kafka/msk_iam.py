"""Logins by AWS IAM on Amazon MSK, `sasl.mechanism = AWS_MSK_IAM`.

kafka-python has the mechanism. librdkafka logs in by OAUTHBEARER instead, which MSK offers on the same port,
with tokens of AWS's signer. botocore renews the credentials; a process has one session for each profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.msk import AwsMskIamClient, SaslMechanismAwsMskIam

from archiver.errors import ConfigError
from archiver.kafka.token_callback import CallbackTokens

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from botocore.session import Session

MECHANISM: Final = "AWS_MSK_IAM"
REGION: Final = "sasl.aws.region"
PROFILE: Final = "sasl.aws.profile"
_REGION_IN_HOST: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z]+(?:-[a-z]+)+-\d+)\.", re.IGNORECASE)
"""Brokers of MSK are named b-1.NAME.ID.c2.kafka.REGION.amazonaws.com, or boot-ID.c1.kafka-serverless.REGION.…"""
_SOURCES: Final = (
    f"Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile ({PROFILE} or AWS_PROFILE), a web"
    " identity, or the role of the container or instance; on Spark's workers, too"
)


class MskLoginFailed(SaslAuthenticationFailedError):  # type: ignore[misc]
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIdentity:
    region: str
    session: Session
    signer: Callable[..., tuple[str, int]]

    def credentials(self) -> ReadOnlyCredentials:
        """Raises KafkaConnectionError if AWS doesn't answer, else MskLoginFailed."""
        from botocore import exceptions as aws

        try:
            source = self.session.get_credentials()
            if source is None:
                raise MskLoginFailed(f"there are no AWS credentials here. {_SOURCES}")
            return source.get_frozen_credentials()
        except (aws.HTTPClientError, aws.ConnectionError) as error:
            raise KafkaConnectionError(f"AWS gives no credentials: {type(error).__name__}") from error
        except (aws.BotoCoreError, aws.ClientError, RuntimeError, ValueError) as error:
            reason = f"the AWS credentials have expired or can't be renewed: {_reason(error)}"
            raise MskLoginFailed(f"{reason}. {_SOURCES}") from error

    def token(self) -> tuple[str, float]:
        """An OAUTHBEARER token, and when it or its credentials expire, in seconds since 1970."""
        frozen = self.credentials()
        token, until_ms = self.signer(self.region, _provider(frozen))
        expiry = getattr(self.session.get_credentials(), "_expiry_time", None)
        return token, min(until_ms / 1000, expiry.timestamp() if isinstance(expiry, datetime) else float("inf"))

    def explain(self, error: SaslAuthenticationFailedError | UnsupportedSaslMechanismError) -> MskLoginFailed:
        if isinstance(error, MskLoginFailed):
            return error
        if isinstance(error, UnsupportedSaslMechanismError):
            return MskLoginFailed(
                f"this listener has no logins by IAM: {error}. MSK listens for them on port 9098, public access on 9198"
            )
        try:
            key, method = self.credentials().access_key, self.session.get_credentials().method
        except (MskLoginFailed, KafkaConnectionError) as problem:
            return MskLoginFailed(f"MSK refuses the login: {error}; and {problem.args[0]}")
        return MskLoginFailed(
            f"MSK refuses access key {key} (from {method}) in region {self.region}, and gives no"
            f" reason: {error}. Check that it may kafka-cluster:Connect to this cluster, that it was not deleted and"
            f" its session is not over, that {REGION} is the cluster's region, and this machine's clock"
            f" ({datetime.now(UTC):%Y-%m-%d %H:%M} UTC)"
        )


class _Login(SaslMechanismAwsMskIam):  # type: ignore[misc]
    """kafka-python would make a session for each connection."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self._identity = config.get("sasl_oauth_token_provider")

    def _build_client(self) -> AwsMskIamClient:
        if not isinstance(self._identity, MskIdentity):
            return super()._build_client()
        frozen = self._identity.credentials()
        return AwsMskIamClient(
            host=self.host,
            access_key=frozen.access_key,
            secret_key=frozen.secret_key,
            token=frozen.token,
            region=self._identity.region,
        )


def msk_identity(servers: Iterable[str], *, region: str | None, profile: str | None) -> MskIdentity:
    """Raises ConfigError without a region or AWS's libraries, or for an unknown profile."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError as error:
        raise ConfigError(
            f"sasl.mechanism {MECHANISM} needs AWS's signer: pip install 'kafka-iceberg-archiver[aws]', here and on"
            " Spark's workers",
            option="sasl.mechanism",
        ) from error
    register_sasl_mechanism(MECHANISM, _Login, overwrite=True)
    session = aws_session(profile)
    return MskIdentity(
        region=_region(servers, region, session),
        session=session,
        signer=MSKAuthTokenProvider.generate_auth_token_from_credentials_provider,
    )


def msk_tokens(identity: MskIdentity) -> CallbackTokens:
    return CallbackTokens("AWS's signer", identity.token)


@cache
def aws_session(profile: str | None) -> Session:
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    session = Session(profile=profile)
    try:
        session.get_scoped_config()
    except BotoCoreError as error:
        raise ConfigError(f"The AWS profile can't be used: {error}", option=PROFILE) from error
    return session


def _region(servers: Iterable[str], option: str | None, session: Session) -> str:
    named = {match[1].lower() for server in servers if (match := _REGION_IN_HOST.search(server))}
    if option is not None and named - {option}:
        raise ConfigError(
            f"{REGION} is {option}, but the brokers' names say {', '.join(sorted(named))}. MSK takes signatures for"
            f" the cluster's region only: drop {REGION}",
            option=REGION,
        )
    if len(named) > 1:
        raise ConfigError(f"The brokers are in several regions: {', '.join(sorted(named))}", option="bootstrap.servers")
    local = os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if (region := option or next(iter(named), None) or local) is None:
        raise ConfigError(
            f"sasl.mechanism {MECHANISM} needs the cluster's region, which the brokers' names don't say: set {REGION}",
            option=REGION,
        )
    return str(region)


def _provider(frozen: ReadOnlyCredentials) -> Any:
    from botocore.credentials import CredentialProvider, Credentials

    class Frozen(CredentialProvider):  # type: ignore[misc]
        def load(self) -> Credentials:
            return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    return Frozen()


def _reason(error: Exception) -> str:
    """Omits texts that have secrets."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict) and isinstance(said := answer.get("Error"), dict):
        return f"{said.get('Code')}: {said.get('Message')}"
    return f"{type(error).__name__}: {error}"
