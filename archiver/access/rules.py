"""Rules for topics and groups. Denials win.

Without rules, everything is allowed. As in Kafka, reading and writing imply describing, and a denied describe denies
both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from archiver.access.principals import Principal
from archiver.config.serve_security import AclSection, OperationWord


class Operation(Enum):
    """On a topic or a group."""

    DESCRIBE = "describe"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"


_ALLOWED: Final = {
    "describe": frozenset({Operation.DESCRIBE}),
    "read": frozenset({Operation.DESCRIBE, Operation.READ}),
    "write": frozenset({Operation.DESCRIBE, Operation.WRITE}),
    "all": frozenset(Operation),
}
_DENIED: Final = {
    "describe": frozenset(Operation),
    "read": frozenset({Operation.READ, Operation.DELETE}),
    "write": frozenset({Operation.WRITE}),
    "all": frozenset(Operation),
}


@dataclass(frozen=True, slots=True)
class Names:
    exact: frozenset[str]
    beginnings: tuple[str, ...]

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> Names:
        listed = tuple(patterns)
        return cls(
            frozenset(name for name in listed if not name.endswith("*")),
            tuple(prefix[:-1] for prefix in listed if prefix.endswith("*")),
        )

    def has(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.beginnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Allows or denies operations to some principals."""

    principals: Names
    is_denial: bool
    operations: frozenset[Operation]
    topics: Names
    groups: Names

    @classmethod
    def parse(
        cls,
        principal: str,
        permission: Literal["allow", "deny"],
        operations: Iterable[OperationWord],
        topics: Iterable[str],
        groups: Iterable[str],
    ) -> Rule:
        meaning = _DENIED if permission == "deny" else _ALLOWED
        return cls(
            principals=Names.parse((principal,)),
            is_denial=permission == "deny",
            operations=frozenset(item for operation in operations for item in meaning[operation]),
            topics=Names.parse(topics),
            groups=Names.parse(groups),
        )


class Access:
    """The permissions of one principal."""

    __slots__ = ("_rules", "is_open", "principal")

    def __init__(self, principal: Principal, rules: Iterable[Rule]) -> None:
        applicable = tuple(rules)
        self.principal = principal
        self.is_open = not applicable
        self._rules = tuple(rule for rule in applicable if rule.principals.has(str(principal)))

    def topic(self, name: str, operation: Operation) -> bool:
        return self.is_open or self._allows(
            [rule.is_denial for rule in self._rules if operation in rule.operations and rule.topics.has(name)]
        )

    def sees(self, topic: str) -> bool:
        return self.topic(topic, Operation.DESCRIBE)

    def reads(self, topic: str) -> bool:
        return self.topic(topic, Operation.READ)

    def writes(self, topic: str) -> bool:
        return self.topic(topic, Operation.WRITE)

    def group(self, name: str, operation: Operation) -> bool:
        return self.is_open or self._allows(
            [rule.is_denial for rule in self._rules if operation in rule.operations and rule.groups.has(name)]
        )

    @staticmethod
    def _allows(denials: list[bool]) -> bool:
        return bool(denials) and not any(denials)


def rules_in(sections: Iterable[AclSection]) -> tuple[Rule, ...]:
    """Parse the rules."""
    return tuple(Rule.parse(acl.principal, acl.permission, acl.operations, acl.topics, acl.groups) for acl in sections)
