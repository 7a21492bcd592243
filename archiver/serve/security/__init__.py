"""Who may come into a server, and what they may do. Knows no protocol's frames and no archive (docs/serve.md).

- who: `principals`, `certificates` (TLS), `exchanges` (SASL) with `scram`, `tokens` and `token_keys` (OAUTHBEARER),
  `users` with `registry_users`, and `session`, which is what a connection is known by
- how often: `attempts`
- what: `access` (rules for topics and groups), `quotas`
- `setup` makes it all of a configuration
"""

from archiver.serve.security.access import Access, Operation, Rule
from archiver.serve.security.attempts import Attempts
from archiver.serve.security.exchanges import Mechanisms
from archiver.serve.security.principals import ANONYMOUS, Principal
from archiver.serve.security.quotas import Quota, Quotas
from archiver.serve.security.registry_users import ListedUser, UserAccounts
from archiver.serve.security.session import Granted, OpenDoor, Session, Shaken
from archiver.serve.security.setup import Security

__all__ = [
    "ANONYMOUS",
    "Access",
    "Attempts",
    "Granted",
    "ListedUser",
    "Mechanisms",
    "OpenDoor",
    "Operation",
    "Principal",
    "Quota",
    "Quotas",
    "Rule",
    "Security",
    "Session",
    "Shaken",
    "UserAccounts",
]
