"""Who somebody is, and what they may do with topics and groups. Knows no protocol; servers of any kind use it.

- `principals`: names, as rules and logs write them
- `rules`: what a principal may do
- `passwords`: the keys that are kept of a password
- `users`: all users as a server knows them, and looking them up again
- `accounts`: users in the registry, for servers and for `archiver users`
"""

from archiver.access.accounts import ListedUser, RegistryUsers, UserAccounts
from archiver.access.principals import ANONYMOUS, Principal
from archiver.access.rules import Access, Operation, Rule, rules_in
from archiver.access.users import KnownUsers, Users

__all__ = [
    "ANONYMOUS",
    "Access",
    "KnownUsers",
    "ListedUser",
    "Operation",
    "Principal",
    "RegistryUsers",
    "Rule",
    "UserAccounts",
    "Users",
    "rules_in",
]
