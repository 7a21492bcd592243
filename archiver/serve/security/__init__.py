"""Authentication and limits of a Kafka server (docs/serve.md)."""

from archiver.serve.security.attempts import Attempts
from archiver.serve.security.exchanges import Mechanisms
from archiver.serve.security.quotas import Quota, Quotas
from archiver.serve.security.session import Granted, OpenDoor, Session, Shaken
from archiver.serve.security.setup import Security

__all__ = [
    "Attempts",
    "Granted",
    "Mechanisms",
    "OpenDoor",
    "Quota",
    "Quotas",
    "Security",
    "Session",
    "Shaken",
]
