"""IAM logins: region, credentials, advice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as aws
from botocore.credentials import Credentials
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from archiver.errors import AccessDenied, ConfigError
from archiver.kafka import BrokerClient, msk_iam
from archiver.kafka.admin import ClusterAdmin
from archiver.kafka.msk_iam import MskIdentity, MskLoginFailed, msk_identity, msk_tokens
from archiver.kafka.options import parse_kafka_options
from archiver.kafka.protocol_errors import explain, is_transient, refuses_credentials

BROKER = "b-1.shop.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:9098"
OPTIONS = {"bootstrap.servers": BROKER, "security.protocol": "sasl_ssl", "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    msk_iam.aws_session.cache_clear()


class FakeSession:
    def __init__(self, source: Callable[[], Any]) -> None:
        self._source = source

    def get_credentials(self) -> Any:
        return self._source()


class Refusing:
    access_key, method = "AKID", "assume-role"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_frozen_credentials(self) -> Any:
        raise self._error


def identity(source: Any) -> MskIdentity:
    session: Any = FakeSession(lambda: source)
    return MskIdentity(region="eu-west-1", session=session, signer=lambda *_: ("token", 9_000_000_000_000))


@pytest.mark.parametrize(
    ("server", "region"),
    [
        (BROKER, "eu-west-1"),
        ("boot-x1.c3.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("b-2-public.Shop.a.c2.kafka.AP-Southeast-2.amazonaws.com:9198", "ap-southeast-2"),
        ("b-1.shop.a.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("b-1.shop.a.c2.kafka.us-gov-west-1.amazonaws.com:9098", "us-gov-west-1"),
    ],
)
def test_brokers_names_say_the_region(server: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    assert msk_identity([server], region=None, profile=None).region == region


def test_other_names_need_a_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs the cluster's region, .*: set sasl.aws.region"):
        msk_identity(["kafka.example:9098"], region=None, profile=None)
    assert msk_identity(["kafka.example:9098"], region="eu-west-1", profile=None).region == "eu-west-1"
    (tmp_path / "config").write_text("[profile shop]\nregion = eu-north-1\n")
    assert msk_identity(["kafka.example:9098"], region=None, profile="shop").region == "eu-north-1"
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    assert msk_identity(["kafka.example:9098"], region=None, profile=None).region == "sa-east-1"


def test_regions_that_contradict_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"sasl.aws.region is us-east-1, but the brokers' names say eu-west-1"):
        msk_identity([BROKER], region="us-east-1", profile=None)
    with pytest.raises(ConfigError, match="several regions: eu-west-1, us-east-1"):
        msk_identity([BROKER, BROKER.replace("eu-west", "us-east")], region=None, profile=None)


def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"The AWS profile can't be used: .*shop"):
        parse_kafka_options(OPTIONS | {"sasl.aws.profile": "shop"}).client_configuration()


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ConfigError, match=r"pip install 'kafka-iceberg-archiver\[aws\]'"):
        parse_kafka_options(OPTIONS).client_configuration()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"security.protocol": "sasl_plaintext"}, "AWS_MSK_IAM needs security.protocol sasl_ssl"),
        ({"sasl.username": "u"}, "sasl.username has no effect with .* AWS_MSK_IAM"),
        ({"sasl.token.provider": "m:f"}, "sasl.token.provider has no effect with .* AWS_MSK_IAM"),
        ({"sasl.aws.region": "Ireland"}, "sasl.aws.region: .*eu-west-1"),
        ({"security.protocol": "ssl"}, "sasl.mechanism has no effect"),
        ({"sasl.mechanism": "PLAIN", "sasl.aws.region": "eu-west-1"}, "sasl.aws.region has no effect|needs sasl"),
    ],
)
def test_options_without_an_effect_are_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_kafka_options(OPTIONS | more)


def test_missing_credentials_name_their_sources() -> None:
    with pytest.raises(MskLoginFailed, match=r"there are no AWS credentials here.*AWS_ACCESS_KEY_ID.*Spark's workers"):
        msk_identity([BROKER], region=None, profile=None).credentials()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            aws.ClientError({"Error": {"Code": "ExpiredToken", "Message": "The token has expired"}}, "AssumeRole"),
            "can't be renewed: ExpiredToken: The token has expired",
        ),
        (aws.SSOTokenLoadError(error_msg="sign in again"), "can't be renewed: SSOTokenLoadError"),
        (RuntimeError("the refreshed credentials are still expired"), "still expired"),
    ],
)
def test_credentials_that_cannot_be_renewed_are_refused(error: Exception, message: str) -> None:
    with pytest.raises(MskLoginFailed, match=message) as refused:
        identity(Refusing(error)).credentials()
    assert refuses_credentials(refused.value)


@pytest.mark.parametrize("error", [aws.ConnectTimeoutError(endpoint_url="x"), aws.ReadTimeoutError(endpoint_url="x")])
def test_silence_of_aws_is_retried(error: Exception) -> None:
    with pytest.raises(KafkaConnectionError) as silent:
        identity(Refusing(error)).credentials()
    assert is_transient(silent.value)


def test_a_token_ends_with_its_credentials() -> None:
    lasting = Credentials("AKID", "secret")
    assert identity(lasting).token() == ("token", 9_000_000_000.0)
    ending: Any = Credentials("AKID", "secret", "session")
    ending._expiry_time = datetime.now(UTC) + timedelta(minutes=5)
    assert identity(ending).token()[1] == ending._expiry_time.timestamp()
    assert msk_tokens(identity(ending)).dated_token()[0] == "token"


def test_a_refusal_says_who_was_refused() -> None:
    who = identity(Credentials("AKID", "hunter2", method="env"))
    shown = who.explain(SaslAuthenticationFailedError("Access denied"))
    text = str(explain(shown, broker="b:9098"))
    assert "MSK refuses access key AKID (from env) in region eu-west-1, and gives no reason" in text
    assert isinstance(explain(shown), AccessDenied)
    assert "hunter2" not in text
    error = identity(None).explain(UnsupportedSaslMechanismError("Enabled: SCRAM-SHA-512"))
    assert "MSK listens for them on port 9098" in str(explain(error))


def test_the_admin_client_names_missing_credentials() -> None:
    with pytest.raises(AccessDenied, match="The login by IAM failed: there are no AWS credentials here"):
        ClusterAdmin(OPTIONS)


def test_missing_credentials_are_named_before_a_connection() -> None:
    with pytest.raises(AccessDenied, match="The login by IAM failed: there are no AWS credentials here"):
        BrokerClient(OPTIONS)
