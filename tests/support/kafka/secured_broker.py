"""A broker with a listener per authentication."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from archiver.local import kafka, ports, process
from archiver.local.part import PartContext
from archiver.local.state import draw
from tests.support.timing.eventually import eventually

USER: Final = "archiver"
PASSWORD: Final = "hunter2 with = and spaces"
LISTENERS: Final = ("PLAIN", "SCRAM", "OAUTH", "MUTUAL", "SCRAMTLS", "IAM")
IAM_ACCOUNT: Final = ("AKIDARCHIVER", "secret/of+the=account", "eu-west-1", "-")
"""Access key, secret key, region of the cluster, and no session token."""
IAM_SESSION: Final = ("ASIDARCHIVER", "secret of a session".replace(" ", "/"), "eu-west-1", "session+token/of=role")
_IAM_SOURCE: Final = Path(__file__).parents[2] / "java" / "MskIam.java"
_MODULE: Final = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredBroker:
    open_address: str
    addresses: dict[str, str]
    folder: Path

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.open_address})

    def topic(self, name: str) -> None:
        admin = self.admin  # its futures end with it
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    make_certificates(folder)
    chosen = ports.choose((kafka.PORT, kafka.CONTROLLER_PORT, *LISTENERS))
    state = draw().with_ports(chosen)
    context = PartContext(folder=folder / "kafka", log=folder / "kafka.log", state=state)
    part = kafka.Kafka()
    part.prepare(replace(context, folder=folder / "kafka"), lambda _: None)
    settings = {**kafka.broker_settings(state), **security_settings(chosen, folder)}
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    (context.folder / "server.properties").write_text(text)
    accounts = (IAM_ACCOUNT, IAM_SESSION)
    (folder / "iam-accounts").write_text("".join(" ".join(account) + "\n" for account in accounts))
    mark = process.spawn(with_iam(part.launch(context), folder))
    broker = SecuredBroker(
        open_address=kafka.bootstrap_servers(state),
        addresses={name: f"{ports.HOST}:{chosen[name]}" for name in LISTENERS},
        folder=folder,
    )
    try:

        def is_ready() -> bool:
            assert process.is_running(mark), process.tail(context.log)
            return part.is_ready(context)

        eventually(is_ready, lambda: process.tail(context.log), seconds=90, every=0.3)
        add_scram_user(broker.admin)
        yield broker
    finally:
        process.stop(mark, with_signal=signal.SIGTERM, timeout=20)


def security_settings(chosen: dict[str, int], folder: Path) -> dict[str, str]:
    kinds = {"MUTUAL": "SSL", "SCRAMTLS": "SASL_SSL", "IAM": "SASL_SSL"}
    named = {name: f"{name}://{ports.HOST}:{chosen[name]}" for name in LISTENERS}
    opened = f"PLAINTEXT://{ports.HOST}:{chosen[kafka.PORT]}"
    protocols = ",".join(f"{name}:{kinds.get(name, 'SASL_PLAINTEXT')}" for name in LISTENERS)
    scram = f"{_MODULE}.scram.ScramLoginModule required;"
    plain = f'{_MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    oauth = f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    both = "SCRAM-SHA-256,SCRAM-SHA-512"
    accounts = f'accounts="{folder / "iam-accounts"}"'
    return {
        "listeners": ",".join([opened, *named.values(), f"CONTROLLER://{ports.HOST}:{chosen[kafka.CONTROLLER_PORT]}"]),
        "advertised.listeners": ",".join([opened, *named.values()]),
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": plain,
        "listener.name.scram.sasl.enabled.mechanisms": both,
        "listener.name.scram.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.scram.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.scramtls.sasl.enabled.mechanisms": both,
        "listener.name.scramtls.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.scramtls.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": oauth,
        "listener.name.oauth.oauthbearer.connections.max.reauth.ms": "2000",
        "listener.name.iam.sasl.enabled.mechanisms": "AWS_MSK_IAM,OAUTHBEARER",
        "listener.name.iam.aws_msk_iam.sasl.jaas.config": f"MskIam$Login required {accounts};",
        "listener.name.iam.aws_msk_iam.sasl.server.callback.handler.class": "MskIam$Accounts",
        "listener.name.iam.oauthbearer.sasl.jaas.config": f"{oauth[:-1]} {accounts};",
        "listener.name.iam.oauthbearer.sasl.server.callback.handler.class": "MskIam$Accounts",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
    }


def with_iam(launch: process.Launch, folder: Path) -> process.Launch:
    arguments = list(launch.argv)
    jars = arguments.index("-cp") + 1
    classes = folder / "iam-classes"
    compiler = (arguments[0], "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn")
    listed = ":".join(map(str, Path(arguments[jars]).parent.glob("*.jar")))  # the compiler expands no `*`
    subprocess.run([*compiler, "-cp", listed, "-d", str(classes), str(_IAM_SOURCE)], check=True, capture_output=True)
    arguments[jars] = f"{classes}:{arguments[jars]}"
    return replace(launch, argv=tuple(arguments))


def add_scram_user(admin: AdminClient) -> None:
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4_096)
        upsertion = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([upsertion])[USER].result(30)


def make_certificates(folder: Path) -> None:
    for authority in ("ca", "stranger-ca"):
        own = f"-keyout {authority}.key -out {authority}.pem"
        openssl(folder, f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} {own}")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "stranger-ca")):
        openssl(folder, f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl(
            folder,
            f"x509 -req -days 2 -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial "
            f"-extfile names -out {name}.crt",
        )
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())


def openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)
