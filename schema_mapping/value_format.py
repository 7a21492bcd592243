"""The protocols of a value format: it turns schemas into columns, and bytes into rows and back.

A format has a name, and `formats` looks it up by that name. It reads schemas (`DeclaredSchema` to `ValueSchema`),
compiles them to mappings with a ledger's ids (`ValueMapping`), and reads mappings back from their JSON.
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
    """A field as its schema declares it: its name and type, in the format's own words.

    `is_enum` says that its column has names, which other versions of the schema may give to other values.
    """

    name: str
    type: str
    is_enum: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedField:
    """A field that its schema excludes from the columns. `number` is 0 if the format has none."""

    number: int
    name: str
    type: str


class DeclaredSchema(Protocol):
    """A schema as it is handed around before it is read: a value that pickles, compares, and is complete."""

    @property
    def format(self) -> str:
        """The name of the format that reads this schema."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the types that a value may have, as its mapping has them."""

    @property
    def envelope(self) -> bytes | None:
        """The bytes that a coerced replay puts before values without an envelope; None if it may add none."""


class ValueSchema(Protocol):
    """A schema that has been read, for the key or value of one table."""

    def fingerprint(self) -> str:
        """SHA-256, in hex, over all that bytes and columns depend on.

        The format's name is part of it, except for Protobuf. A schema with a known fingerprint never changes a table.
        """

    def columns(self, options: MappingOptions) -> ColumnGraph:
        """The columns that the schema asks for."""

    def comments(self) -> Comments:
        """The schema's comments on its fields, for people."""

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> ValueMapping:
        """The mapping with these columns. With `keep_raw`, `__raw__` is set for every value; keys have it so."""


class ValueMapping(Protocol):
    """The columns of a key or value, and the codec between its bytes and the columns.

    A mapping is a value that pickles and compares. A row is a struct: the columns of the fields, then `__prefix__`,
    `__raw__`, `__err__`, `__form__` and `__unrecognized__`. Without a schema it has only `__raw__`.
    """

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over the schema's facts and the options, not the ids."""

    @property
    def keep_raw(self) -> bool:
        """Whether `__raw__` is set for every value."""

    @property
    def options(self) -> MappingOptions | None:
        """The options that the mapping was made with; None if the format has none."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the types that a value may have. `which` in `decode` gives indexes in this tuple."""

    @property
    def cuts(self) -> tuple[CutStruct, ...]:
        """The structs that have no columns and are kept whole."""

    @property
    def column_ids(self) -> frozenset[int]:
        """Field ids of all columns that rows write."""

    @property
    def unknown_ids(self) -> frozenset[int]:
        """Field ids of the `__unrecognized__` columns that hold only what the schema doesn't know.

        In other columns of this name there are also messages that are cut, or fields that the schema excludes.
        """

    @property
    def arrow_type(self) -> pa.StructType:
        """The Arrow struct of decoded rows, with field ids."""

    @property
    def iceberg_type(self) -> StructType:
        """The Iceberg struct of the column, with field ids."""

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        """Decodes values to rows of `arrow_type`; a null value is a null row. Bad bytes never raise.

        The bytes of a value that can't be decoded go to `__raw__`, with a code in `__err__`. `which` gives the index of
        each value's type in `messages`, or NOT_ONE. `prefix_lengths` gives the length of each value's envelope: these
        bytes are kept as `__prefix__`. Raises KernelError for values of another Arrow type, and RowsTooLargeError for
        too many values at once.
        """

    @property
    def takes_dictionaries(self) -> bool:
        """Whether `encode` takes texts of the type IN_DICTIONARY without making each a text of its own first."""

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Gives back the values of `rows`, byte for byte. Raises KernelError for rows of another type."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which the format named by its `format` makes an equal mapping."""

    def schema(self, envelope: bytes | None) -> DeclaredSchema | None:
        """The schema that the mapping was made from, with its envelope; None if it has none."""

    def declared(self, path: Path) -> DeclaredField:
        """The field of a live column."""

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:
        """The fields without a column of the struct at the path."""


@runtime_checkable
class ShowsValues(Protocol):
    """A mapping that can show its values to people as JSON. Mappings needn't."""

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        """Shows values as structs of strings with the fields SHOWN_FIELDS; a null value is null.

        `rows` are the rows of `arrow_type` that the values were decoded to. Values without a JSON form have a reason.
        """


class ValueFormat(Protocol):
    """A format: reads its schemas, and reads its mappings back."""

    @property
    def name(self) -> str:
        """The format's name in schemas and in the JSON of mappings."""

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:
        """Reads the schema of the `root` of a table whose ledger has these entries.

        Raises DescriptorError for a schema that can't be read.
        """

    def mapping(self, data: Mapping[str, Any]) -> ValueMapping:
        """Reads a mapping back from its `to_json`."""

    def load_encoder(self) -> None:
        """Import what encodes values, so that the first ones don't wait for it."""
