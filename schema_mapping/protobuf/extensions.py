"""Extensions that become columns, with explicit presence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from schema_mapping.errors import DescriptorError


def find_extensions(descriptor: Descriptor, names: Sequence[str]) -> Mapping[str, tuple[FieldDescriptor, ...]]:
    """By extended message. Raises DescriptorError for an unknown name."""
    by_extendee: defaultdict[str, list[FieldDescriptor]] = defaultdict(list)
    for name in dict.fromkeys(names):
        try:
            extension = descriptor.file.pool.FindExtensionByName(name)
        except KeyError:
            raise DescriptorError(
                "there is no such extension; give its full name, and the file that defines it with the schema",
                extension=name,
                message=descriptor.full_name,
            ) from None
        by_extendee[extendee_of(extension).full_name].append(extension)
    return {extendee: tuple(extensions) for extendee, extensions in by_extendee.items()}


def extendee_of(extension: FieldDescriptor) -> Descriptor:
    assert extension.containing_type is not None
    return extension.containing_type


def check_extendees(extensions: Mapping[str, Iterable[FieldDescriptor]], reached: Container[str], message: str) -> None:
    """Raises DescriptorError if an extended message isn't in the mapping, or is a message set."""
    for extendee, fields in extensions.items():
        for field in fields:
            if extendee not in reached:
                raise DescriptorError(
                    "the extension extends a message that isn't part of this one",
                    extension=field.full_name,
                    extends=extendee,
                    message=message,
                )
            if extendee_of(field).GetOptions().message_set_wire_format:
                raise DescriptorError(
                    "members of a message set can't be columns: they stay in its `__unrecognized__`",
                    extension=field.full_name,
                    extends=extendee,
                )
