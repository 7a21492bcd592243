"""JSON values of usual and odd writers."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from schema_mapping.errors import KernelError
from tests.support.schemas.hostile_json import ORDER, odd_values
from tests.support.schemas.strategies_json import json_mapping

SCHEMA = {
    "type": "object",
    "properties": {
        "d": {"type": "number"},
        "e": {"type": "number"},
        "f": {"type": "number"},
        "s": {"type": "string"},
        "a": {"type": "array", "items": {"type": "integer"}},
        "n": {"type": "integer"},
    },
}
WRITTEN = {
    "Python": rb'{"d": 1.0, "e": 1e+16, "f": 1e-05, "s": "\u00e9<&>\u2028/", "a": [1, 2], "n": null}',
    "orjson": '{"d":1.0,"e":1e+16,"f":0.00001,"s":"\u00e9<&>\u2028/","a":[1,2],"n":null}'.encode(),
    "msgspec": '{"d":1.0,"e":1e16,"f":0.00001,"s":"\u00e9<&>\u2028/","a":[1,2],"n":null}'.encode(),
    "JavaScript": '{"d":1,"e":10000000000000000,"f":0.00001,"s":"\u00e9<&>\u2028/","a":[1,2],"n":null}'.encode(),
    "Go": '{"a":[1,2],"d":1,"e":10000000000000000,"f":0.00001,"n":null,"s":"\u00e9\\u003c\\u003e\\u2028"}'.encode(),
    "Java": '{"d":1.0,"e":1.0E16,"f":1.0E-5,"s":"\u00e9<&>\u2028/","a":[1,2],"n":null}'.encode(),
    "Jackson, indented": '{\n  "d" : 1.0,\n  "e" : 1.0E16,\n  "s" : "\u00e9/",\n  "a" : [ 1, 2 ]\n}'.encode(),
    "PHP": rb'{"d":1.5,"s":"\u00e9<&>\u2028\/","a":[1,2],"n":null}',
    "lines": b'{"d":1.5,"n":7}\n',
    "Jackson, to bytes": '{"d":1.0,"s":"\u00e9\\uD83D\\uDE00\\u001F","a":[1,2],"n":null}'.encode(),
    "Gson": '{"d":1.0,"e":1.0E16,"s":"\u00e9\\u003c\\u003e\\u0026\\u003d\\u0027+`\\u2028","n":null}'.encode(),
    "System.Text.Json": rb'{"d":1,"e":1E+16,"f":1E-05,"s":"\u00E9\u0022\u0027\u002B\uD83D\uDE00=","n":null}',
    "Newtonsoft": '{"d":1.0,"e":1E+16,"f":1E-05,"s":"\u00e9\\u0085\\u2028\\"\'=","n":null}'.encode(),
    "nlohmann": '{"d":1.0,"e":1e+15,"f":1e-05,"s":"\u00e9","n":null}'.encode(),
    "RapidJSON": b'{"d":100000000000000000000.0,"e":1e21,"f":0.00001,"s":"x","n":null}',
}


def decoded(schema: Any, values: list[bytes | None]) -> pa.StructArray:
    mapping = json_mapping(schema)
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    return rows


@pytest.mark.parametrize("writer", WRITTEN)
def test_values_of_writers_need_no_raw(writer: str) -> None:
    rows = decoded(SCHEMA, [WRITTEN[writer], WRITTEN["Python"], WRITTEN[writer]])
    assert rows.field("__raw__").null_count == rows.field("__err__").null_count == 3
    expected = json.loads(WRITTEN[writer])
    row = rows[0].as_py()
    assert {name: row[name] for name in SCHEMA["properties"]} == {
        name: expected.get(name) for name in SCHEMA["properties"]
    }


def test_odd_values_come_back() -> None:
    values = odd_values()
    shuffled = random.Random(5).sample(values, len(values))
    forms = [decoded(ORDER, [*values, None]), decoded(ORDER, [*shuffled, None])]
    assert all(rows.field("__err__").null_count < len(values) for rows in forms)
    mapping = json_mapping(ORDER)
    for value in values:
        rows = mapping.decode(pa.array([value]))
        assert mapping.encode(rows).to_pylist() == [value]


def test_cut_values_come_back() -> None:
    mapping = json_mapping(ORDER)
    text = json.dumps({"id": 1, "tags": ["\u00e9", None], "labels": {"a": 1.5}, "lines": [{"sku": "x"}]}).encode()
    values = [text[:size] for size in range(len(text))]
    rows = mapping.decode(pa.array([*values, text]))
    assert mapping.encode(rows).to_pylist() == [*values, text]
    assert rows.field("__err__").to_pylist() == [f"truncated@{size}" for size in range(len(text))] + [None]


ITEMS = {"type": "array", "items": {"type": "object", "properties": {name: {"type": "integer"} for name in "abc"}}}


@pytest.mark.parametrize(
    "items",
    [
        '[{"a":1,"b":2},{"c":3,"a":1}]',
        '[{"c":3,"a":1},{"a":1,"b":2}]',
        '[{"b":2},{"c":3,"a":1},{"a":1,"b":2}]',
        '[{"a":1},{"c":3,"a":1},{"b":2},{"c":3,"x":[]}]',
        '[{"a":null},{"c":3,"a":null},{"a":1,"b":2}]',
    ],
)
def test_items_that_lack_members_share_an_order(items: str) -> None:
    value = items.encode()
    rows = decoded(ITEMS, [value, b'[{"b":1,"a":2}]', value])
    assert rows.field("__raw__").null_count == 3


def test_items_of_contrary_orders_are_kept_raw() -> None:
    value = b'[{"a":1,"b":2},{"b":2,"a":1}]'
    assert decoded(ITEMS, [value]).field("__raw__").to_pylist() == [value]


def test_random_orders_are_kept_raw_beyond_a_bound() -> None:
    names = [f"m{number}" for number in range(40)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    choices = random.Random(1)
    values: list[bytes | None] = [
        json.dumps(dict.fromkeys(choices.sample(names, len(names)), 1)).encode() for _ in range(6_000)
    ]
    rows = decoded(schema, values)
    forms = rows.field("__form__").drop_null().unique()
    assert 1_000 < len(forms) <= 4_096
    assert forms.nbytes < 2 << 20
    assert rows.field("__raw__").null_count >= 1_000
    assert rows.field("m7").to_pylist() == [1] * len(values)


def test_unknown_form_is_refused_with_its_row() -> None:
    mapping = json_mapping(SCHEMA)
    rows = mapping.decode(pa.array([b'{"d":1}', b'{"d": 2}']))
    names = [field.name for field in rows.type]
    for form in ("newer", "0:99", "9:1", "0!99", "0:-0", "indent=99", "0:"):
        columns = [rows.field(name) for name in names]
        columns[names.index("__form__")] = pa.array([None, form])
        damaged = pa.StructArray.from_arrays(columns, fields=list(rows.type))
        if form == "0:":
            assert mapping.encode(damaged)[1].as_py() == b"{}"
            continue
        with pytest.raises(KernelError, match="a form of writing that isn't known here") as caught:
            mapping.encode(damaged)
        assert caught.value.context["row"] == 1


def test_infinite_number_of_another_writer_is_refused() -> None:
    mapping = json_mapping(SCHEMA)
    rows = mapping.decode(pa.array([b'{"d":1}']))
    columns = [pa.array([float("inf")]) if field.name == "d" else rows.field(field.name) for field in rows.type]
    with pytest.raises(KernelError, match="a number that JSON can't have") as caught:
        mapping.encode(pa.StructArray.from_arrays(columns, fields=list(rows.type)))
    assert caught.value.context["column"] == "d"
