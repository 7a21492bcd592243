"""Go's form of messages: canonical, but with oneof members ("late fields") last (docs/producers.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schema_mapping.protobuf.kernel.tables import OPS
from schema_mapping.protobuf.table_rows import FieldRow, NodeRow

ONEOFS_LAST: Final = "oneofs_last"
"""The `__form__` of such a value."""
ALL_ONEOFS_LAST: Final = "all_oneofs_last"
"""The `__form__` if the message has members of oneofs without a column, and these come after the other fields too."""

Array = npt.NDArray[Any]


def late_arrays(
    arrays: Mapping[str, Array], fields: Sequence[FieldRow], nodes: Sequence[NodeRow]
) -> Mapping[str, Array]:
    """Return arrays with oneofs last; `field_arrays` has the canonical order.

    `late` maps positions to canonical field indexes. In `late_columns` fields without a column keep their numbers'
    positions. `places` and `late_places` are positions in both orders.
    """
    order = _order(fields, nodes, lambda field: field.late)
    places = np.arange(len(fields), dtype=np.int32)
    late_places = places.copy()
    late_places[order] = places
    return {
        "late": order,
        "late_columns": _order(fields, nodes, lambda field: 0 if field.op == OPS["ASIDE"] else field.late),
        "places": places,
        "late_places": late_places,
        "late_fields": np.ascontiguousarray(arrays["fields"][order]),
        "late_lookup": late_places[arrays["lookup"]],
    }


def form_of(fields: Sequence[FieldRow]) -> str:
    return ALL_ONEOFS_LAST if any(field.late and field.op == OPS["ASIDE"] for field in fields) else ONEOFS_LAST


def _order(fields: Sequence[FieldRow], nodes: Sequence[NodeRow], late: Callable[[FieldRow], int]) -> Array:
    order = np.arange(len(fields), dtype=np.int32)
    for node in nodes:
        part = range(node.first, node.first + node.count)
        order[node.first : node.first + node.count] = sorted(part, key=lambda at: (late(fields[at]), fields[at].number))
    return order
