"""Who may do what: rules for topics and groups. A rule that denies wins over all that allow. No I/O.

Without any rule, everybody who may come in may read everything. As soon as there is one, nobody may do what no rule
allows. Reading implies describing, as in Kafka; who may not describe may not read either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from archiver.access.principals import Principal
from archiver.config.serve_security import AclSection, OperationWord


class Operation(Enum):
    """What may be done with a topic or a group."""

    DESCRIBE = "describe"
    READ = "read"
    DELETE = "delete"


_ALLOWED: Final = {
    "describe": frozenset({Operation.DESCRIBE}),
    "read": frozenset({Operation.DESCRIBE, Operation.READ}),
    "all": frozenset(Operation),
}
_DENIED: Final = {
    "describe": frozenset(Operation),
    "read": frozenset({Operation.READ, Operation.DELETE}),
    "all": frozenset(Operation),
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a rule speaks of: exact ones, and beginnings, written with `*` at their end."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> Names:
        """Take names and patterns such as `orders`, `orders-*` and `*`."""
        found = tuple(patterns)
        return cls(
            frozenset(each for each in found if not each.endswith("*")),
            tuple(each[:-1] for each in found if each.endswith("*")),
        )

    def has(self, name: str) -> bool:
        """Whether a name is one of them."""
        return name in self.exact or name.startswith(self.beginnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What some principals may do, or may not do, with some topics and groups."""

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
        """Take the words of the configuration."""
        meaning = _DENIED if permission == "deny" else _ALLOWED
        return cls(
            principals=Names.parse((principal,)),
            is_denial=permission == "deny",
            operations=frozenset(one for each in operations for one in meaning[each]),
            topics=Names.parse(topics),
            groups=Names.parse(groups),
        )


class Access:
    """What one principal may do. Asked for each topic and group of each request."""

    __slots__ = ("_rules", "is_open", "principal")

    def __init__(self, principal: Principal, rules: Iterable[Rule]) -> None:
        known = tuple(rules)
        self.principal = principal
        self.is_open = not known
        self._rules = tuple(each for each in known if each.principals.has(str(principal)))

    def topic(self, name: str, operation: Operation) -> bool:
        """Whether this may be done with a topic."""
        return self.is_open or self._allows(
            [each.is_denial for each in self._rules if operation in each.operations and each.topics.has(name)]
        )

    def sees(self, topic: str) -> bool:
        """Whether a topic may be known of."""
        return self.topic(topic, Operation.DESCRIBE)

    def reads(self, topic: str) -> bool:
        """Whether a topic may be read."""
        return self.topic(topic, Operation.READ)

    def group(self, name: str, operation: Operation) -> bool:
        """Whether this may be done with a group."""
        return self.is_open or self._allows(
            [each.is_denial for each in self._rules if operation in each.operations and each.groups.has(name)]
        )

    @staticmethod
    def _allows(denials: list[bool]) -> bool:
        return bool(denials) and not any(denials)


def rules_in(sections: Iterable[AclSection]) -> tuple[Rule, ...]:
    """Take the rules of the configuration."""
    return tuple(Rule.parse(acl.principal, acl.permission, acl.operations, acl.topics, acl.groups) for acl in sections)
