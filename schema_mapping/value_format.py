"""The protocols of a value format.

It reads schemas (`DeclaredSchema` to `ValueSchema`), and compiles them with a ledger's ids to a `ValueMapping`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.types import StructType

    from schema_mapping.columns.docs import Comments
    from schema_mapping.columns.expansion import CutStruct
    from schema_mapping.columns.graph import ColumnGraph
    from schema_mapping.columns.ids import ColumnIds
    from schema_mapping.columns.ledger import LedgerEntry, Root
    from schema_mapping.columns.options import MappingOptions
    from schema_mapping.columns.paths import Path

Places: TypeAlias = npt.NDArray[np.int16]
Lengths: TypeAlias = npt.NDArray[np.int32]

NOT_ONE: Final = -1
"""The entry in `which` for a value that has none of the mapping's types."""

SHOWN_FIELDS: Final = ("type", "json", "reason")
"""A shown value: the name of its type and its JSON text, or the reason why it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """In the format's words. `is_enum`: other versions may give its names to other values."""

    name: str
    type: str
    is_enum: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedField:
    """`number` is 0 if the format has none."""

    number: int
    name: str
    type: str


class DeclaredSchema(Protocol):
    """A complete schema before it is read. Picklable and comparable."""

    @property
    def format(self) -> str: ...

    @property
    def messages(self) -> tuple[str, ...]: ...

    @property
    def envelope(self) -> bytes | None:
        """The bytes that a coerced replay adds to values without an envelope, if any."""


class ValueSchema(Protocol):
    """A schema read for a table's key or value."""

    def fingerprint(self) -> str:
        """SHA-256, in hex, over all that bytes and columns depend on, and the format's name (not Protobuf's).

        Known fingerprints never change a table.
        """

    def columns(self, options: MappingOptions) -> ColumnGraph: ...

    def comments(self) -> Comments: ...

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> ValueMapping:
        """`keep_raw` sets `__raw__` for every value, as for keys."""


class ValueMapping(Protocol):
    """The columns of a key or value, and the codec. Picklable and comparable.

    Rows are structs: fields, `__prefix__`, `__raw__`, `__err__`, `__form__`, `__unrecognized__`; raw ones only
    `__raw__`.
    """

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over facts and options, not ids."""

    @property
    def keep_raw(self) -> bool: ...

    @property
    def options(self) -> MappingOptions | None: ...

    @property
    def messages(self) -> tuple[str, ...]:
        """Names of a value's types, to which `which` in `decode` gives indexes."""

    @property
    def cuts(self) -> tuple[CutStruct, ...]: ...

    @property
    def column_ids(self) -> frozenset[int]: ...

    @property
    def unknown_ids(self) -> frozenset[int]:
        """`__unrecognized__` columns with unknown fields only, without cut messages or excluded fields."""

    @property
    def arrow_type(self) -> pa.StructType:
        """The Arrow struct of decoded rows, with field ids."""

    @property
    def iceberg_type(self) -> StructType: ...

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        """Decode to rows of `arrow_type`; null values are null rows. Bad bytes never raise.

        They go to `__raw__`, with a code in `__err__`. `which` are indexes in `messages`, or NOT_ONE. `prefix_lengths`
        are of envelopes. Raises KernelError for another Arrow type, RowsTooLargeError for too many values.
        """

    @property
    def takes_dictionaries(self) -> bool:
        """Whether `encode` takes texts of the type IN_DICTIONARY directly."""

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Return the values byte for byte. Raises KernelError for rows of another type."""

    def to_json(self) -> dict[str, Any]: ...

    def schema(self, envelope: bytes | None) -> DeclaredSchema | None:
        """None if it has none."""

    def declared(self, path: Path) -> DeclaredField: ...

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]: ...


@runtime_checkable
class ShowsValues(Protocol):
    """Optional: shows values as JSON."""

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        """Null for null. Values without a JSON form have a reason."""


@runtime_checkable
class RequiresFields(Protocol):
    """A mapping with fields that every message has. Optional: other encoders refuse null by themselves."""

    @property
    def required_ids(self) -> frozenset[int]:
        """The ids of their columns."""


class ValueFormat(Protocol):
    """A format: reads its schemas, and reads its mappings back."""

    @property
    def name(self) -> str: ...

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:
        """`entries` are the table's. Raises DescriptorError."""

    def mapping(self, data: Mapping[str, Any]) -> ValueMapping: ...

    def load_encoder(self) -> None: ...
