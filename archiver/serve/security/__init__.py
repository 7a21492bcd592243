"""Who may come into a server of Kafka's protocol. Knows no protocol's frames and no archive (docs/serve.md).

- who: `certificates` (TLS), `exchanges` (SASL) with `scram`, `tokens` and `token_keys` (OAUTHBEARER), and `session`,
  which is what a connection is known by; principals, users and rules are of `archiver.access`
- how often: `attempts`, `quotas`
- `setup` makes it all of a configuration
"""

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
