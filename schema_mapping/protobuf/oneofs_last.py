"""The form in which Go writes a message: as the canonical one, but the members of oneofs after all other fields.

The kernel has the tables of fields in this order, too. A value that is canonical in it needs no `__raw__`: its
`__form__` says so (docs/producers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schema_mapping.protobuf.kernel.tables import OPS
from schema_mapping.protobuf.table_rows import FieldRow, NodeRow

ONEOFS_LAST: Final = "oneofs_last"
"""What `__form__` says of such a value."""
ALL_ONEOFS_LAST: Final = "all_oneofs_last"
"""What it says where the message has members of oneofs without a column, and these stand after other fields, too."""

Array = npt.NDArray[Any]


def late_arrays(
    arrays: Mapping[str, Array], fields: Sequence[FieldRow], nodes: Sequence[NodeRow]
) -> Mapping[str, Array]:
    """The arrays of fields and of the ways to them with oneofs last, beside those that `field_arrays` gave.

    `late` holds for each place the field that stands there then; `places` and `late_places` where a field is found.
    `late_columns` is as `late`, but with fields without a column in their numbers' places, as ONEOFS_LAST has them.
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
    """What `__form__` says of values of a mapping with these fields."""
    return ALL_ONEOFS_LAST if any(field.late and field.op == OPS["ASIDE"] for field in fields) else ONEOFS_LAST


def _order(fields: Sequence[FieldRow], nodes: Sequence[NodeRow], late: Callable[[FieldRow], int]) -> Array:
    order = np.arange(len(fields), dtype=np.int32)
    for node in nodes:
        part = range(node.first, node.first + node.count)
        order[node.first : node.first + node.count] = sorted(part, key=lambda at: (late(fields[at]), fields[at].number))
    return order
