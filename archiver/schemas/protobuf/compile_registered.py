"""Compile registered schemas with protoc, leniently if protoc refuses a text.

Confluent's clients accept some texts that protoc doesn't. The refused parts (custom options, missing imports,
names equal in JSON) don't change the meaning of bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from archiver.errors import ConfigError
from archiver.schemas.protobuf.proto_text import ProtoText, Span
from archiver.schemas.protobuf.schema_files import compile_files, is_shipped
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import add_files

MAIN_FILE: Final = "registered-schema.proto"
MOST_ROUNDS: Final = 100
"""protoc reports one option of a field at a time, so a round drops one of each."""
_COMPLAINT: Final = re.compile(r"^(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>\d+): (?!warning: )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RegisteredFiles:
    """`ready` were registered as descriptors, `texts` are the rest."""

    texts: Mapping[str, bytes]
    ready: Mapping[str, FileDescriptorProto]
    imports: tuple[Path, ...] = ()

    @classmethod
    def of(cls, text: str, references: Mapping[str, str], imports: tuple[Path, ...] = ()) -> RegisteredFiles:
        ready: dict[str, FileDescriptorProto] = {}
        texts: dict[str, bytes] = {}
        for name, registered in {**references, MAIN_FILE: text}.items():
            parsed = from_base64(registered)
            if parsed is None:
                texts[name] = registered.encode(errors="surrogatepass")
            else:
                parsed.name = name
                ready[name] = parsed
        return cls(texts, ready, imports)

    def compiled(self) -> FileDescriptorSet:
        """Raises ConfigError with protoc's message."""
        names = sorted({*self.texts, *self._imported()})
        ready = FileDescriptorSet(file=self.ready.values())
        compiled = _compile(self.texts, names, ready, self.imports) if names else ready
        files: Mapping[str, FileDescriptorProto] = {file.name: file for file in (*compiled.file, *self.ready.values())}
        if MAIN_FILE in self.ready and not _links(files):
            # Registries leave out imports here, too. If that doesn't help, ids still get their messages' names.
            files = _loosely_linked(files, self.ready)
        return FileDescriptorSet(file=files.values())

    def compiled_leniently(self) -> FileDescriptorSet:
        """Raises ConfigError."""
        files = RegisteredFiles({name: self._bare(text) for name, text in self.texts.items()}, self.ready, self.imports)
        widened: set[str] = set()
        for _ in range(MOST_ROUNDS):
            try:
                return files.compiled()
            except ConfigError as error:
                places = _places(error.message, files.texts)
            less = dict(_without_options(files.texts, places))
            if less == files.texts:
                less = dict(_allowing(files.texts, places))
            if less == files.texts:
                if places.keys() <= widened:
                    break
                less = dict(_widened(files.texts, places, files.ready))
                widened |= places.keys()
            files = RegisteredFiles(less, self.ready, self.imports)
        return self._refused()

    def _refused(self) -> FileDescriptorSet:
        try:
            return self.compiled()
        except ConfigError as error:
            missing = sorted({path for text in self.texts.values() for path in self._missing(ProtoText(text))})
            if not missing:
                raise
            raise ConfigError(
                f"{error.message}\nIt doesn't compile without its missing imports either ({', '.join(missing)}):"
                " register them as references of the schema, or set `imports` to a folder that has them",
                missing=missing,
            ) from error

    def _imported(self) -> Iterator[str]:
        for file in self.ready.values():
            for name in file.dependency:
                if name not in self.texts and name not in self.ready and _is_found(name, self.imports):
                    yield name

    def _missing(self, text: ProtoText) -> Iterator[str]:
        for line in text.imports:
            if line.path not in {*self.texts, *self.ready} and not _is_found(line.path, self.imports):
                yield line.path

    def _bare(self, text: bytes) -> bytes:
        parsed = ProtoText(text)
        missing = set(self._missing(parsed))
        spans: list[Span] = [line for line in parsed.imports if line.path in missing]
        spans += [option for option in parsed.options if option.can_go and option.has_list]
        return parsed.without(spans)


def from_base64(text: str) -> FileDescriptorProto | None:
    """None if it is text."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _compile(
    texts: Mapping[str, bytes], names: Sequence[str], ready: FileDescriptorSet, imports: Sequence[Path]
) -> FileDescriptorSet:
    with tempfile.TemporaryDirectory(prefix="archiver-schema-") as folder:
        for name, text in texts.items():
            try:
                path = Path(folder, name)
                if not path.resolve().is_relative_to(Path(folder).resolve()):
                    raise ConfigError("a reference leaves its folder", reference=name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
            except (OSError, ValueError) as error:
                raise ConfigError(f"a reference has a name that no file can have: {error}", reference=name) from error
        try:
            return FileDescriptorSet.FromString(compile_files(Path(folder), names, ready, imports))
        except ConfigError as error:
            raise ConfigError(error.message.replace(f"{folder}/", ""), **error.context) from error


def _is_found(name: str, imports: Sequence[Path]) -> bool:
    return is_shipped(name) or any((folder / name).is_file() for folder in imports)


def _places(message: str, texts: Mapping[str, bytes]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for match in _COMPLAINT.finditer(message):
        if match["file"] in texts:
            offset = ProtoText(texts[match["file"]]).offset(int(match["line"]), int(match["column"]))
            places.setdefault(match["file"], []).append(offset)
    return places


def _without_options(texts: Mapping[str, bytes], places: Mapping[str, list[int]]) -> Iterator[tuple[str, bytes]]:
    for name, text in texts.items():
        parsed = ProtoText(text)
        options = (option for option in parsed.options if option.can_go)
        refused = [option for option in options if any(offset in option for offset in places.get(name, ()))]
        yield name, parsed.without(refused) if refused else text


def _allowing(texts: Mapping[str, bytes], places: Mapping[str, list[int]]) -> Iterator[tuple[str, bytes]]:
    """Allow names that are equal in JSON.

    Nothing else may change: further imports could give a type's name another meaning.
    """
    for name, text in texts.items():
        yield name, ProtoText(text).allowing_json_conflicts(places[name]) if name in places else text


def _widened(
    texts: Mapping[str, bytes], places: Mapping[str, list[int]], ready: Mapping[str, FileDescriptorProto]
) -> Iterator[tuple[str, bytes]]:
    imported = {name: {line.path for line in ProtoText(text).imports} for name, text in texts.items()}
    imported |= {name: set(file.dependency) for name, file in ready.items()}
    for name in texts:
        text = texts[name]
        if name in places:
            text = ProtoText(text).with_imports(_import_more(name, imported))
        yield name, text


def _import_more(name: str, imported: dict[str, set[str]]) -> list[str]:
    files = imported.keys() - imported[name] - {MAIN_FILE}
    more = sorted(file for file in files if name not in _reached(file, imported))
    imported[name] |= set(more)
    return more


def _reached(name: str, imported: Mapping[str, set[str]]) -> set[str]:
    reached, pending = {name}, [name]
    while pending:
        more = imported.get(pending.pop(), set()) - reached
        reached |= more
        pending += more
    return reached


def _links(files: Mapping[str, FileDescriptorProto]) -> bool:
    try:
        add_files(DescriptorPool(), files, files, "")
    except DescriptorError:
        return False
    return True


def _loosely_linked(
    files: Mapping[str, FileDescriptorProto], ready: Iterable[str]
) -> Mapping[str, FileDescriptorProto]:
    """Let ready files import all further files. Unchanged if they don't link so."""
    loose = {name: FileDescriptorProto.FromString(file.SerializeToString()) for name, file in files.items()}
    imported = {name: set(file.dependency) for name, file in files.items()}
    for name in ready:
        file = loose[name]
        more = _import_more(name, imported)
        public = {file.dependency[at] for at in file.public_dependency}
        file.dependency[:] = [*(path for path in file.dependency if path in files), *more]
        file.public_dependency[:] = [at for at, path in enumerate(file.dependency) if path in public]
        file.ClearField("weak_dependency")
    return loose if _links(loose) else files
