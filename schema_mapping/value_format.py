"""What a format of keys and values is: schemas turned into columns, and bytes into rows of these and back.

A format is known by its name. It reads schemas (`DeclaredSchema` to `ValueSchema`), which are compiled to mappings with
a ledger's ids (`ValueMapping`), and makes mappings again from their JSON. `formats` looks a format up by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.types import StructType

    from schema_mapping.columns.cuts import Cut
    from schema_mapping.columns.docs import Comments
    from schema_mapping.columns.graph import ColumnGraph
    from schema_mapping.columns.ids import IdAssignment
    from schema_mapping.columns.ledger import LedgerEntry, Root
    from schema_mapping.columns.options import MappingOptions
    from schema_mapping.columns.paths import Path

Places: TypeAlias = npt.NDArray[np.int16]
Lengths: TypeAlias = npt.NDArray[np.int32]

NOT_ONE: Final = -1
"""In `which`: a value that is none of the mapping's messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """A field as its schema declares it: its name and type, in the format's own words."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedField:
    """A field that its schema wants no column for. `number` is 0 where the format has none."""

    number: int
    name: str
    type: str


class DeclaredSchema(Protocol):
    """A schema on its way to a table: a value that pickles and compares, with all that the format needs to read it."""

    @property
    def format(self) -> str:
        """The name of the format that reads it."""

    @property
    def envelope(self) -> bytes | None:
        """What a coerced replay puts before values that were written without an envelope; None where nothing may."""


class ValueSchema(Protocol):
    """A schema that has been read, for one table's key or value."""

    def fingerprint(self) -> str:
        """SHA-256, in hex, over what bytes and columns depend on, the format's name among it unless it is Protobuf.

        A schema of a known fingerprint never changes a table.
        """

    def columns(self, options: MappingOptions) -> ColumnGraph:
        """The columns that it asks for."""

    def comments(self) -> Comments:
        """What it says about its fields, for people."""

    def compile(self, ids: IdAssignment, options: MappingOptions, *, keep_raw: bool) -> ValueMapping:
        """The mapping with these columns. With `keep_raw`, `__raw__` is set for every value, as keys have it."""


class ValueMapping(Protocol):
    """The columns of a key or value, and the codec between them and its bytes: a value that pickles and compares.

    A row's struct has the columns of the fields, then `__prefix__`, `__raw__`, `__err__`, `__form__` and
    `__unrecognized__`; without a schema only `__raw__`.
    """

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over the schema's facts and the options, not the ids."""

    @property
    def keep_raw(self) -> bool:
        """Whether `__raw__` is set for every value."""

    @property
    def options(self) -> MappingOptions | None:
        """The options that it was made with; None where a format has none."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the types that a value may be; places in it are what `decode` wants to know of each value."""

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The structs that are kept whole."""

    @property
    def column_ids(self) -> frozenset[int]:
        """Field ids of all columns that rows are written to."""

    @property
    def arrow_type(self) -> pa.StructType:
        """The Arrow struct of decoded rows, with field ids."""

    @property
    def iceberg_type(self) -> StructType:
        """The Iceberg struct of the column, with field ids."""

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        """Values as rows of `arrow_type`; a null value is a null row. Never raises on what the bytes are.

        A value that can't be decoded has its bytes in `__raw__` and a code in `__err__`. `which` says of each value its
        message's place in `messages`, or NOT_ONE; `prefix_lengths` how many of its first bytes are an envelope, kept as
        `__prefix__`. Raises KernelError for values of another type, RowsTooLargeError for too many at once.
        """

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """The values that `rows` were decoded from, byte for byte. Raises KernelError for rows of another type."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which the format, its `format`, makes an equal mapping."""

    def schema(self, envelope: bytes | None) -> DeclaredSchema | None:
        """The schema that it was made from, with its envelope; None where it has none."""

    def declared(self, path: Path) -> DeclaredField:
        """The field behind a live column."""

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:
        """Fields without a column of the struct at the path."""


class ValueFormat(Protocol):
    """A format: how its schemas are read, and its mappings made again."""

    @property
    def name(self) -> str:
        """What schemas and the JSON of mappings call it."""

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:
        """The schema for the `root` of a table whose ledger has these entries.

        Raises DescriptorError for a schema that can't be read.
        """

    def mapping(self, data: Mapping[str, Any]) -> ValueMapping:
        """The mapping whose `to_json` this is."""
