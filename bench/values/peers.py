"""The archiver and its peers, in their fastest ways."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import protarrow
import ptars
import pyarrow as pa
import pybufarrow
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import compile_mapping
from values.proto_text import with_imports
from values.shapes import MessageShape

Run = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A run, or the `reason` why there is none. `note`: a defect."""

    name: str
    run: Run | None = None
    reason: str = ""
    note: str = ""


class Bench:
    def __init__(self, shape: MessageShape, size: int) -> None:
        self.shape = shape
        self.values = list(shape.values(size))
        self.size = sum(map(len, self.values))
        self.column = pa.array(self.values, pa.binary())
        self.kind: type[Message] = GetMessageClass(shape.descriptor)
        self.mapping = compile_mapping(shape.descriptor)
        self.rows = self.mapping.decode(self.column)
        assert self.rows.field("__raw__").null_count == len(self.values), "columns hold every byte"
        assert self.mapping.encode(self.rows).equals(self.column)

    def decoders(self) -> tuple[Contender, ...]:
        return (
            Contender(name="ours", run=partial(self.mapping.decode, self.column)),
            _try("ptars", self._ptars_decode),
            _try("protarrow", self._protarrow_decode),
            _try("pybufarrow", self._pybufarrow_decode),
            Contender(name="upb", run=self._upb_decode),
        )

    def encoders(self) -> tuple[Contender, ...]:
        messages = [self.kind.FromString(value) for value in self.values]
        return (
            Contender(name="ours", run=partial(self.mapping.encode, self.rows)),
            _try("ptars", self._ptars_encode, self._ptars_loss),
            _try("protarrow", self._protarrow_encode),
            Contender(name="pybufarrow", reason="only decodes"),
            Contender(name="upb", run=lambda: [message.SerializeToString() for message in messages]),
        )

    def _ptars(self) -> Any:
        return ptars.HandlerPool([self.shape.descriptor.file]).get_for_message(self.shape.descriptor)

    def _ptars_decode(self) -> Run:
        return partial(self._ptars().array_to_record_batch, self.column)

    def _ptars_encode(self) -> Run:
        handler = self._ptars()
        return partial(handler.record_batch_to_array, handler.array_to_record_batch(self.column))

    def _ptars_loss(self, run: Run) -> str:
        written: Any = run()
        parse = self.kind.FromString
        lost = sum(parse(new) != parse(old) for new, old in zip(written.to_pylist(), self.values, strict=True))
        return f"{lost} of {len(self.values)} messages come back with other content" if lost else ""

    def _protarrow_decode(self) -> Run:
        return lambda: protarrow.messages_to_record_batch(self._upb_decode(), self.kind)

    def _protarrow_encode(self) -> Run:
        batch = protarrow.messages_to_record_batch(self._upb_decode(), self.kind)
        return lambda: [message.SerializeToString() for message in protarrow.record_batch_to_messages(batch, self.kind)]

    def _upb_decode(self) -> list[Message]:
        parse = self.kind.FromString
        return [parse(value) for value in self.values]

    def _pybufarrow_decode(self) -> Run:
        name = self.shape.descriptor.file.name
        with tempfile.TemporaryDirectory() as folder:
            for path, text in with_imports(self.shape.descriptor.file).items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            kind = pybufarrow.HyperType(name, self.shape.descriptor.name, [folder])
            transcoder = pybufarrow.Transcoder.from_proto_file(
                name, self.shape.descriptor.name, [folder], hyper_type=kind, json_termination_auto=True
            )
        return partial(_transcode, transcoder, self.values)


def _transcode(transcoder: pybufarrow.Transcoder, values: list[bytes]) -> pa.RecordBatch:
    append = transcoder.append
    for value in values:
        append(value)
    return transcoder.flush()


def _try(name: str, prepare: Callable[[], Run], loss: Callable[[Run], str] | None = None) -> Contender:
    """A peer may fail in any way, even by a Rust panic."""
    try:
        run = prepare()
        run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        return Contender(name=name, reason=f"{type(error).__name__}: {str(error)[:80]}")
    return Contender(name=name, run=run, note="" if loss is None else loss(run))
