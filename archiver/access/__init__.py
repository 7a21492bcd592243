"""Clients' identities and permissions."""

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
