"""Schemas that protoc refuses and Confluent accepts."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from archiver.errors import BadSchema, ConfigError
from archiver.schemas.protobuf.registered_schema import ProtobufSchemas
from archiver.schemas.registry.client import SchemaRegistry
from archiver.schemas.registry.settings import SchemaRegistrySettings
from schema_mapping import compile_mapping
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.shop_schemas import client

OPTION = """import "google/protobuf/descriptor.proto"; enum L { L0 = 0; HIGH = 1; }
message R { repeated string s = 1; optional L l = 2; }
extend google.protobuf.FieldOptions { optional L lvl = 50001; optional R rule = 50002; }
extend google.protobuf.FileOptions { optional R file_rule = 50002; }
extend google.protobuf.MessageOptions { optional R message_rule = 50002; }
extend google.protobuf.EnumValueOptions { optional L value_lvl = 50002; }
extend google.protobuf.OneofOptions { optional L oneof_lvl = 50002; }
"""

QUOTED = {
    "of a field": 'message M { int32 a = 1 [(lvl) = "HIGH"]; }',
    "of many fields": 'message M { int32 a = 1 [(lvl) = "HIGH"]; int32 b = 2 [(lvl) = "HIGH", (s.rule).l = "HIGH"]; }',
    "of an enum value": 'message M { E a = 1; enum E { E0 = 0 [(value_lvl) = "L0"]; E1 = 1 [(value_lvl) = "HIGH"]; } }',
    "of a oneof": 'message M { oneof o { option (oneof_lvl) = "HIGH"; int32 a = 1; } }',
    "in a message": 'message M { int32 a = 1 [(rule) = { l: "HIGH" }]; }',
    "of a number": "message M { int32 a = 1 [(lvl) = 1]; }",
    "in single quotes": "message M { int32 a = 1 [(lvl) = 'HIGH']; }",
    "after a comment": 'message M { int32 a = 1 [(lvl) /* "L0" */ = // ]\n "HIGH"]; }',
    "beside a list": 'message M { option (message_rule) = { s: ["x", "HIGH"], l: "HIGH" }; int32 a = 1; }',
    "after a tab": 'message M {\n\tint32 a = 1 [\n\t  (lvl) =\t"HIGH"]; }',
    "in two strings": "message M { int32 a = 1 [(lvl) = \"HI\" 'GH']; }",
    "by a full name": 'message M { int32 a = 1 [(.s.lvl) = "HIGH"]; }',
    "in angle brackets": 'message M { option (message_rule) = < s: "x", l: "HIGH" >; int32 a = 1; }',
    "of a map field": 'message M { int32 a = 1; map<string, int32> m = 2 [(lvl) = "HIGH", deprecated = true]; }',
}
LISTS = {
    "of a message": "message M { int32 a = 1 [(rule) = [{ l: L0 }, { l: HIGH }]]; }",
    "of a part": 'message M { int32 a = 1 [(s.rule).s = ["x", "]"], deprecated = true]; }',
    "of a file": 'option (file_rule).s = ["a", "b"]; message M { int32 a = 1; }',
    "of a type": "message M { option (message_rule) = [{ l: L0 }]; int32 a = 1; }",
    "of an enum value": "message M { E a = 1; enum E { E0 = 0; E1 = 1 [(value_lvl) = [HIGH]]; } }",
    "of a oneof": "message M { oneof o { option (oneof_lvl) = [L0, HIGH]; int32 a = 1; } }",
    "over lines": "message M { int32 a = 1 [(rule) = [\n{ s: ['[', \"{\"] }, // one\n{ l: HIGH }\n]]; }",
    "empty": "message M { int32 a = 1 [(rule).s = []]; }",
    "of a map field": "message M { int32 a = 1; map<string, int32> m = 2 [(rule) = [{ s: 'x' }]]; }",
    "with adjacent strings": 'message M { int32 a = 1 [(rule).s = ["x" "y", "it\\"s ]"]]; }',
    "after packed": "message M { int32 a = 1; repeated int32 b = 2 [packed = false, (rule) = [{ l: HIGH }]]; }",
}
UNKNOWN = {
    "option": "message M { int32 a = 1 [(un.known) = 1]; }",
    "option of an import left out": 'message M { int32 a = 1 [(confluent.field_meta) = { doc: "x" }]; }',
    "of an enum": "message M { E a = 1; enum E { option (un.known) = { x: 1 }; E0 = 0; E1 = 1; } }",
    "of a method": "message M { int32 a = 1; } service S2 { rpc R(M) returns (M) { option (un.known).x = -1.5e3; } }",
    "of an extension range": 'message M { int32 a = 1 [(un.known) = "a;b]", (un.other) = { [x.y/z.W] { q: 1 } }]; }',
    "part of an option": "message M { int32 a = 1 [(rule).nope = 1]; }",
    "set twice": 'option (file_rule) = { s: "a" }; option (file_rule) = { s: "b" }; message M { int32 a = 1; }',
    "of an import that is missing": 'import "acme/o.proto"; message M { int32 a = 1 [(acme.o) = 1, (lvl) = HIGH]; }',
    "of a service": 'message M { int32 a = 1; } service S3 { option (un.known) = "x" "y"; rpc R(M) returns (M); }',
    "of extensions in parts": "message M { int32 a = 1 [(un.known).(un.other).x = +inf, (.un.dotted) = 0x1F]; }",
    "of a oneof's member": 'message M { oneof o { int32 a = 1 [(un.known) = { a: [1, 2] b: < c: "}" > }]; } }',
    "of a stream": "message M { int32 a = 1; }"
    " service S4 { rpc R(stream M) returns (stream M) { option (un.known) = {}; } }",
}
MISSING_IMPORTS = {
    "only options need": 'import "acme/o.proto"; option (acme.f).x = { y: 1 };'
    " message M { int32 a = 1 [(acme.o) = [1]]; }",
    "nothing needs": 'import public "gogoproto/gogo.proto"; import weak "x/y.proto"; message M { int32 a = 1; }',
    "in single quotes": "import 'acme/o.proto'; message M { int32 a = 1; // import \"x.proto\";\n }",
    "after the type": 'message M { int32 a = 1; } import "acme/late.proto";',
    "of a deep folder": 'import "a-b/c.d/e_f-v1.2/o.proto"; message M { int32 a = 1 [(a_b.c) = "x"]; }',
    "of a service": 'import "google/api/annotations.proto"; import "pgv/validate.proto"; message M { int32 a = 1; }'
    ' service S { rpc R(M) returns (M) { option (google.api.http) = { get: "/v" }; option (pgv.x) = "y"; } }',
    "named twice": 'import "acme/twice.proto"; import "acme/twice.proto"; message M { int32 a = 1 [(acme.t) = 1]; }',
    "with a space": 'import "acme/a b.proto"; message M { int32 a = 1 [(acme.ab) = 1]; }',
    "after a comment": '/* import "x" */ import /* here */ "acme/comment.proto" /* ; */ ; message M { int32 a = 1; }',
}
BUILT_IN = {
    "confluent's": 'import "confluent/meta.proto"; import "confluent/type/decimal.proto"; message M { int32 a = 1;'
    ' confluent.type.Decimal d = 2 [(confluent.field_meta) = { params: [{ key: "precision", value: "10" }] }]; }',
    "confluent's older path": 'import "confluent/types/decimal.proto";'
    " message M { int32 a = 1; confluent.type.Decimal d = 2; }",
    "google's types": 'import "google/type/date.proto"; import "google/type/money.proto";'
    ' import "google/type/dayofweek.proto";'
    " message M { int32 a = 1; google.type.Date d = 2; google.type.Money m = 3; google.type.DayOfWeek w = 4; }",
    "google's api": 'import "google/api/field_behavior.proto"; import "google/api/httpbody.proto"; message M {'
    " int32 a = 1 [(google.api.field_behavior) = REQUIRED]; google.api.HttpBody b = 2; }",
    "google's rpc": 'import "google/rpc/status.proto"; import "google/longrunning/operations_proto.proto";'
    " message M { int32 a = 1; google.rpc.Status s = 2; }",
    "google's resources": 'import "google/api/resource.proto"; message M { option (google.api.resource) = {'
    ' type: "shop/M" pattern: "m/{m}" }; int32 a = 1 [(google.api.resource_reference).type = "shop/N"]; }',
    "google's places": 'import "google/type/latlng.proto"; import "google/type/timeofday.proto"; message M {'
    " int32 a = 1; google.type.LatLng l = 2; google.type.TimeOfDay t = 3; }",
    "protobuf's own": 'import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto";'
    ' import "google/protobuf/field_mask.proto"; message M { int32 a = 1; google.protobuf.Value v = 2;'
    " google.protobuf.BoolValue b = 3; google.protobuf.FieldMask m = 4; }",
    "buf's": 'import "buf/validate/validate.proto"; message M { int32 a = 1 [(buf.validate.field).int32.gt = 1];'
    ' string s = 2 [(buf.validate.field).string = { min_len: 1, pattern: "^a" }]; buf.validate.Violations v = 3;'
    ' option (buf.validate.message).cel = { id: "x", expression: "true" }; }',
    "buf's with a list": "message M { int32 a = 1;"
    " string s = 2 [(buf.validate.field).string = [{ min_len: 1 }, { max_len: 9 }]]; }",
    "google's errors": 'import "google/rpc/code.proto"; import "google/rpc/error_details.proto";'
    " message M { int32 a = 1; google.rpc.Code c = 2; google.rpc.BadRequest b = 3; }",
    "google's logs": 'import "google/logging/type/log_severity.proto"; import "google/logging/type/http_request.proto";'
    " message M { int32 a = 1; google.logging.type.LogSeverity s = 2; google.logging.type.HttpRequest r = 3; }",
    "protobuf's types of types": 'import "google/protobuf/api.proto"; import "google/protobuf/source_context.proto";'
    " message M { int32 a = 1; google.protobuf.Method m = 2; google.protobuf.SourceContext c = 3; }",
    "google's calendars": 'import "google/type/datetime.proto"; import "google/type/postal_address.proto";'
    " message M { int32 a = 1; google.type.DateTime d = 2; google.type.PostalAddress p = 3; }",
}
JSON_NAMES = {
    "proto3": "message M { int32 a = 1; string eventType = 2; string event_type = 3; }",
    "given": 'message M { int32 a = 1; string b = 2 [json_name = "x"]; string c = 3 [json_name = "x"]; }',
    "of a default": 'message M { int32 a = 1; string fooBar = 2; string b = 3 [json_name = "fooBar"]; }',
    "of three": "message M { int32 a = 1; int32 x_y_z = 2; int32 xY_z = 3; int32 x_yZ = 4; }",
    "of a map": "message M { int32 a = 1; map<string, int32> by_key = 2; repeated int32 byKey = 3; }",
    "nested": "message M { int32 a = 1; message N { oneof o { int32 f_o = 1; int32 fO = 2; } } N n = 2; }",
    "of underscores": "message M { int32 a = 1; int32 foo__bar = 2; int32 foo_Bar = 3; int32 fooBar = 4; }",
    "of digits": "message M { int32 a = 1; int32 x_1 = 2; int32 x1 = 3; }",
    "given to each other": 'message M { int32 a = 1; int32 b = 2 [json_name = "c"]; int32 c = 3;'
    ' int32 d = 4 [json_name = "b"]; }',
}


def message(registry: FakeRegistry, text: str, references: list[tuple[str, str, int]] | None = None) -> Descriptor:
    registry.register("orders-value", text, references or [])
    return find_descriptor(client(registry).latest("orders-value").source("s.M"))


def round_trip(descriptor: Descriptor, value: bytes) -> pa.StructArray:
    mapping = compile_mapping(descriptor)
    rows = mapping.decode(pa.array([value], pa.binary()))
    assert rows.field("__err__").to_pylist() == [None]
    assert mapping.encode(rows).to_pylist() == [value]
    return rows


@pytest.mark.parametrize(
    "bodies",
    [
        pytest.param(bodies, id=kind)
        for kind, bodies in {
            "quoted enum values": QUOTED,
            "lists": LISTS,
            "unknown options": UNKNOWN,
            "missing imports": MISSING_IMPORTS,
            "built-in imports": BUILT_IN,
            "equal JSON names": JSON_NAMES,
        }.items()
    ],
)
def test_texts_that_kafka_clients_read(registry: FakeRegistry, bodies: dict[str, str]) -> None:
    renamed = [re.sub(r"\bM\b", f"M{number}", body) for number, body in enumerate(bodies.values())]
    lines = [f'syntax = "proto3"; package s; {OPTION}', *renamed]
    registry.register("orders-value", "\n".join(lines))
    schema = client(registry).latest("orders-value")
    for number, name in enumerate(bodies):
        rows = round_trip(find_descriptor(schema.source(f"s.M{number}")), b"\x08\x01")
        assert rows.field("a").to_pylist() in ([1], ["E1"]), name


@pytest.mark.parametrize("body", [LISTS["of a part"], UNKNOWN["option of an import left out"], JSON_NAMES["given"]])
def test_one_text_that_kafka_clients_read(registry: FakeRegistry, body: str) -> None:
    descriptor = message(registry, f'syntax = "proto3"; package s; {OPTION} {body}')
    assert round_trip(descriptor, b"\x08\x01").field("a").to_pylist() == [1]


def test_options_of_protobuf_stay(registry: FakeRegistry) -> None:
    descriptor = message(
        registry,
        f"""syntax = "proto2"; package s; {OPTION} message M {{
        repeated int32 a = 1 [packed = false, (lvl) = "HIGH"];
        repeated int32 b = 2 [(lvl) = "HIGH", packed = true];
        optional int32 c = 3 [(rule) = [{{ l: L0 }}], default = 7, json_name = "cc"];
        optional E e = 4 [default = E2];
        enum E {{ option allow_alias = true; E1 = 0 [(value_lvl) = "HIGH"]; E2 = 0; }}
        message Set {{ option (message_rule) = [1]; option message_set_wire_format = true; extensions 4 to max; }}
        optional Set set = 5; }}""",
    )
    a, b, c, e, s = descriptor.fields
    assert (a.is_packed, b.is_packed, c.default_value, c.json_name) == (False, True, 7, "cc")
    assert e.enum_type.GetOptions().allow_alias
    assert s.message_type.GetOptions().message_set_wire_format
    rows = round_trip(descriptor, b"\x08\x01\x08\x02\x12\x02\x03\x04\x18\x07")
    assert [rows.field(name).to_pylist() for name in "abc"] == [[[1, 2]], [[3, 4]], [7]]


def test_features_of_an_edition_stay(registry: FakeRegistry) -> None:
    text = f"""edition = "2023"; package s; option features.repeated_field_encoding = EXPANDED; {OPTION}
      message M {{ repeated int32 a = 1 [(lvl) = "HIGH"];
      int32 b = 2 [features.field_presence = IMPLICIT, (lvl) = "L0"];
      M m = 3 [(rule) = [], features.message_encoding = DELIMITED]; }}"""
    descriptor = message(registry, text.replace("optional ", ""))
    assert not descriptor.fields_by_name["a"].is_packed
    assert not descriptor.fields_by_name["b"].has_presence
    assert descriptor.fields_by_name["m"].type == descriptor.fields_by_name["m"].TYPE_GROUP
    round_trip(descriptor, b"\x08\x01\x08\x02\x1b\x08\x01\x1c")


def test_columns_of_the_archiver_stay(registry: FakeRegistry) -> None:
    text = f"""syntax = "proto3"; package s; import "archiver/options.proto"; {OPTION}
      message M {{ int32 a = 1 [(archiver.column).name = "b", (lvl) = "HIGH"]; int32 c = 2 [(archiver.column).%s]; }}"""
    assert compile_mapping(message(registry, text % "exclude = true")).arrow_type.names[0] == "b"
    with pytest.raises(BadSchema, match=r"Value must be identifier for boolean option.*exclude"):
        message(registry, text % 'exclude = "yes"')


def test_types_of_references_without_an_import(registry: FakeRegistry) -> None:
    registry.register("third", 'syntax = "proto3"; package third; message V { int32 v = 1; }')
    registry.register(
        "other",
        'syntax = "proto3"; package other; message T { int32 t = 1; third.V v = 2; }',
        [("third.proto", "third", 1)],
    )
    text = 'syntax = "proto3"; package s; message M { other.T a = 1; third.V b = 2; }'
    rows = round_trip(
        message(registry, text, [("other.proto", "other", 1)]), b"\x0a\x04\x08\x01\x12\x00\x12\x02\x08\x05"
    )
    assert rows.field("b").field("v").to_pylist() == [5]


def test_descriptors_without_an_import(registry: FakeRegistry) -> None:
    def registered(text: str, *imports: tuple[str, str]) -> str:
        files = FileDescriptorSet.FromString(compile_text(text, imports=dict(imports)).descriptor_set).file
        file = next(file for file in files if file.name == "test.proto")
        del file.dependency[:]
        file.dependency.append("acme/options.proto")
        return base64.b64encode(file.SerializeToString()).decode()

    imported = 'syntax = "proto3"; package other; message T { int32 t = 1; }'
    registry.register("other", registered(imported))
    text = 'syntax = "proto3"; package s; import "other.proto"; message M { other.T a = 1; }'
    descriptor = message(registry, registered(text, ("other.proto", imported)), [("other.proto", "other", 1)])
    assert round_trip(descriptor, b"\x0a\x02\x08\x01").field("a").field("t").to_pylist() == [1]


def test_descriptors_with_built_in_imports(registry: FakeRegistry) -> None:
    file = FileDescriptorProto(name="x", package="s", syntax="proto3", dependency=["google/type/date.proto"])
    field = file.message_type.add(name="M").field.add(
        name="a", number=1, label=1, type=11, type_name=".google.type.Date"
    )
    assert field.name == "a"
    descriptor = message(registry, base64.b64encode(file.SerializeToString()).decode())
    assert round_trip(descriptor, b"\x0a\x03\x08\xea\x0f").field("a").field("year").to_pylist() == [2026]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('import "acme/c.proto"; message M { acme.C c = 1 [(lvl) = "HIGH"]; }', r"acme/c\.proto: File not found"),
        ('import "acme/c.proto"; message M { acme.C c = 1; }', r"without its missing imports either \(acme/c\.proto\)"),
        ("message M { Nope n = 1; }", '"Nope" is not defined'),
        ("message M { int32 n = 1 [default = x]; }", "default"),
        ("message M { repeated int32 n = 1 [packed = [true]]; }", "Expected option value"),
        ("message M { int32 n = 1", "Reached end of input"),
    ],
)
def test_errors_say_what_is_missing_and_where(registry: FakeRegistry, text: str, reason: str) -> None:
    number = registry.register("orders-value", f'syntax = "proto3"; package s; {OPTION} {text}')
    with pytest.raises(BadSchema, match=reason) as caught:
        client(registry).latest("orders-value")
    assert (caught.value.context["subject"], caught.value.context["schema_id"]) == ("orders-value", number)
    assert "/tmp" not in str(caught.value)


def test_imports_from_folders(registry: FakeRegistry, tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "c.proto").write_text('syntax = "proto3"; package acme; message C { int32 v = 1; }')
    text = 'syntax = "proto3"; package s; import "acme/c.proto"; message M { acme.C a = 1; }'
    number = registry.register("orders-value", text)
    schema = kind_of(registry, ProtobufSchemas(imports=(tmp_path,))).by_id(number)
    assert schema is not None
    assert round_trip(find_descriptor(schema.source("s.M")), b"\x0a\x02\x08\x01").field("a").field("v").to_pylist() == [
        1
    ]
    with pytest.raises(ConfigError, match=r"no such import folder.*gone"):
        kind_of(registry, ProtobufSchemas(imports=(tmp_path / "gone",))).by_id(number)


def kind_of(registry: FakeRegistry, kind: ProtobufSchemas) -> object:
    settings = SchemaRegistrySettings(urls=(registry.url,), pause=0.001)
    return SchemaRegistry(settings).schemas(kind)
