"""Schema changes: fields, values, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Shown = Mapping[str, tuple[Any, ...]]

TYPES_BEFORE = """
message Money { int64 units = 1; string currency = 2; }
message Tree { int32 leaf = 1; }
enum Colour { NONE = 0; RED = 1; }
"""
TYPES_AFTER = """
message Cash { int64 units = 1; string currency = 2; }
message Cheque { int64 amount = 1; bytes signature = 2; string bank = 3; }
message Tree { int32 leaf = 1; Tree left = 2; map<int32, Tree> others = 3; }
enum Colour { NONE = 0; CRIMSON = 1; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`after` has type, old and new row per column; `back` the rows after the way back."""

    name: str
    fields: tuple[str, str]
    sent: tuple[dict[str, Any], dict[str, Any]]
    after: Shown
    back: Shown | None = None

    @property
    def at_the_end(self) -> Shown:
        back = self.back or {name: (old, new, old) for name, (_, old, new) in self.after.items()}
        return {name: (*rows, rows[0]) for name, rows in back.items()}


def struct(**columns: Any) -> dict[str, Any]:
    return {**columns, "__unrecognized__": None}


CASES = (
    Case(
        name="added",
        fields=("", "string added = 1;"),
        sent=({}, {"added": "a"}),
        after={"added": ("string", None, "a")},
    ),
    Case(
        name="list of messages added",
        fields=("", "repeated Cash purses = 40;"),
        sent=({}, {"purses": [{"units": 3}]}),
        after={"purses": ("list<struct>", None, [struct(units=3, currency="")])},
    ),
    Case(
        name="renamed",
        fields=("int32 old_name = 2;", "int32 new_name = 2;"),
        sent=({"old_name": 1}, {"new_name": 2}),
        after={"new_name": ("int", 1, 2)},
        back={"old_name": (1, 2, 1)},
    ),
    Case(
        name="names swapped",
        fields=("int32 left = 3; int32 right = 4;", "int32 right = 3; int32 left = 4;"),
        sent=({"left": 3, "right": 4}, {"right": 33, "left": 44}),
        after={"right": ("int", 3, 33), "left": ("int", 4, 44)},
        back={"left": (3, 33, 3), "right": (4, 44, 4)},
    ),
    Case(
        name="removed while still sent, and back",
        fields=("int32 removed = 5;", ""),
        sent=({"removed": 5}, {}),
        after={"removed": ("int", 5, None)},
    ),
    Case(
        name="removed, its name given to another",
        fields=("int32 heir = 6;", "string heir = 7;"),
        sent=({"heir": 6}, {"heir": "seven"}),
        after={"heir_6": ("int", 6, None), "heir": ("string", None, "seven")},
        back={"heir": (6, None, 6), "heir_7": (None, "seven", None)},
    ),
    Case(
        name="int32 to int64",
        fields=("int32 wide = 8;", "int64 wide = 8;"),
        sent=({"wide": -8}, {"wide": 1 << 40}),
        after={"wide": ("long", -8, 1 << 40)},
        back={"wide_deleted_N": (-8, 1 << 40, None), "wide": (None, None, -8)},
    ),
    Case(
        name="float to double",
        fields=("float precise = 9;", "double precise = 9;"),
        sent=({"precise": 1.5}, {"precise": 0.1}),
        after={"precise": ("double", 1.5, 0.1)},
        back={"precise_deleted_N": (1.5, 0.1, None), "precise": (None, None, 1.5)},
    ),
    Case(
        name="promotion of list elements",
        fields=("repeated sint32 widths = 10;", "repeated sfixed64 widths = 10;"),
        sent=({"widths": [1, -2]}, {"widths": [1 << 50]}),
        after={"widths": ("list<long>", [1, -2], [1 << 50])},
        back={"widths_deleted_N": ([1, -2], [1 << 50], None), "widths": (None, None, [1, -2])},
    ),
    Case(
        name="promotion of map values",
        fields=("map<string, float> ratios = 11;", "map<string, double> ratios = 11;"),
        sent=({"ratios": {"a": 0.5}}, {"ratios": {"b": 0.1}}),
        after={"ratios": ("map<string, double>", [("a", 0.5)], [("b", 0.1)])},
        back={"ratios_deleted_N": ([("a", 0.5)], [("b", 0.1)], None), "ratios": (None, None, [("a", 0.5)])},
    ),
    Case(
        name="int32 to uint64",
        fields=("int32 natural = 12;", "uint64 natural = 12;"),
        sent=({"natural": -1}, {"natural": (1 << 64) - 2}),
        after={"natural": ("long", -1, -2)},
        back={"natural_deleted_N": (-1, -2, None), "natural": (None, None, -1)},
    ),
    Case(
        name="int32 to sint32",
        fields=("int32 signed = 13;", "sint32 signed = 13;"),
        sent=({"signed": -13}, {"signed": -14}),
        after={"signed": ("int", -13, -14)},
    ),
    Case(
        name="explicit presence",
        fields=("int32 present = 14;", "optional int32 present = 14;"),
        sent=({}, {}),
        after={"present": ("int", 0, None)},
    ),
    Case(
        name="into a oneof",
        fields=("string choice = 15;", "oneof of { string choice = 15; bytes another = 16; }"),
        sent=({"choice": "c"}, {"another": b"a"}),
        after={"choice": ("string", "c", None), "another": ("binary", None, b"a")},
    ),
    Case(
        name="int32 to string",
        fields=("int32 retyped = 17;", "string retyped = 17;"),
        sent=({"retyped": 17}, {"retyped": "r"}),
        after={"retyped_deleted_N": ("int", 17, None), "retyped": ("string", None, "r")},
        back={"retyped": (17, None, 17), "retyped_deleted_N": (None, "r", None)},
    ),
    Case(
        name="singular to repeated",
        fields=("string single = 18;", "repeated string single = 18;"),
        sent=({"single": "s"}, {"single": ["s", ""]}),
        after={"single_deleted_N": ("string", "s", None), "single": ("list<string>", None, ["s", ""])},
        back={"single": ("s", None, "s"), "single_deleted_N": (None, ["s", ""], None)},
    ),
    Case(
        name="repeated to singular",
        fields=("repeated int32 several = 19;", "int32 several = 19;"),
        sent=({"several": [1, 9]}, {"several": 19}),
        after={"several_deleted_N": ("list<int>", [1, 9], None), "several": ("int", None, 19)},
        back={"several": ([1, 9], None, [1, 9]), "several_deleted_N": (None, 19, None)},
    ),
    Case(
        name="uint32 to uint64",
        fields=("uint32 unsigned = 20;", "uint64 unsigned = 20;"),
        sent=({"unsigned": (1 << 32) - 1}, {"unsigned": (1 << 32) - 1}),
        after={"unsigned_deleted_N": ("int", -1, None), "unsigned": ("long", None, (1 << 32) - 1)},
        back={"unsigned": (-1, None, -1), "unsigned_deleted_N": (None, (1 << 32) - 1, None)},
    ),
    Case(
        name="map key of another type",
        fields=("map<int32, string> keyed = 21;", "map<int64, string> keyed = 21;"),
        sent=({"keyed": {1: "k"}}, {"keyed": {1 << 40: "l"}}),
        after={
            "keyed_deleted_N": ("map<int, string>", [(1, "k")], None),
            "keyed": ("map<long, string>", None, [(1 << 40, "l")]),
        },
        back={"keyed": ([(1, "k")], None, [(1, "k")]), "keyed_deleted_N": (None, [(1 << 40, "l")], None)},
    ),
    Case(
        name="names equal but for case",
        fields=("int32 Same = 22;", "int32 Same = 22; int32 SAME = 23;"),
        sent=({"Same": 22}, {"Same": 22, "SAME": 23}),
        after={"Same": ("int", 22, 22), "SAME_23": ("int", None, 23)},
    ),
    Case(
        name="a reserved name",
        fields=("", "bytes __err__ = 24; int32 __unrecognized__ = 25;"),
        sent=({}, {"__err__": b"e", "__unrecognized__": 25}),
        after={"__err___24": ("binary", None, b"e"), "__unrecognized___25": ("int", None, 25)},
    ),
    Case(
        name="message type renamed",
        fields=("Money price = 26;", "Cash price = 26;"),
        sent=({"price": {"units": 1, "currency": "CHF"}}, {"price": {"units": 2}}),
        after={"price": ("struct", struct(units=1, currency="CHF"), struct(units=2, currency=""))},
    ),
    Case(
        name="another message type",
        fields=("Money paid = 27;", "Cheque paid = 27;"),
        sent=({"paid": {"units": 1, "currency": "CHF"}}, {"paid": {"amount": 2, "signature": b"s", "bank": "B"}}),
        after={
            "paid": (
                "struct",
                struct(amount=1, currency_deleted_N="CHF", signature=None, bank=None),
                struct(amount=2, currency_deleted_N=None, signature=b"s", bank="B"),
            )
        },
        back={
            "paid": (
                struct(units=1, currency="CHF", signature_deleted_N=None, bank=None),
                struct(units=2, currency=None, signature_deleted_N=b"s", bank="B"),
                struct(units=1, currency="CHF", signature_deleted_N=None, bank=None),
            )
        },
    ),
    Case(
        name="message to bytes",
        fields=("Money opaque = 28;", "bytes opaque = 28;"),
        sent=({"opaque": {"units": 4}}, {"opaque": b"o"}),
        after={
            "opaque_deleted_N": ("struct", struct(units=4, currency=""), None),
            "opaque": ("binary", None, b"o"),
        },
        back={
            "opaque": (struct(units=4, currency=""), None, struct(units=4, currency="")),
            "opaque_deleted_N": (None, b"o", None),
        },
    ),
    Case(
        name="message that comes to hold itself",
        fields=("Tree tree = 31;", "Tree tree = 31;"),
        sent=({"tree": {"leaf": 1}}, {"tree": {"leaf": 1, "left": {"leaf": 2}, "others": {3: {"leaf": 4}}}}),
        after={
            "tree": (
                "struct",
                struct(leaf=1, left=None, others=None),
                struct(
                    leaf=1,
                    left={"__unrecognized__": b"\x08\x02"},
                    others=[(3, {"__unrecognized__": b"\x08\x04"})],
                ),
            )
        },
    ),
    Case(
        name="enum value renamed",
        fields=("Colour colour = 29;", "Colour colour = 29;"),
        sent=({"colour": 1}, {"colour": 1}),
        after={"colour": ("string", "RED", "CRIMSON")},
    ),
    Case(
        name="enum to string",
        fields=("Colour shade = 30;", "string shade = 30;"),
        sent=({"shade": 1}, {"shade": "pale"}),
        after={"shade": ("string", "RED", "pale")},
    ),
)
