"""Extensions that were asked to be columns: found by their full names, and checked against the mapping.

An extension is then a field of its extendee like any other, with a presence of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from schema_mapping.errors import DescriptorError


def find_extensions(descriptor: Descriptor, names: Sequence[str]) -> Mapping[str, tuple[FieldDescriptor, ...]]:
    """The named extensions by the full name of the message they extend, from the descriptor's own pool.

    Raises DescriptorError for a name that the pool doesn't have or that is no extension's.
    """
    found: defaultdict[str, list[FieldDescriptor]] = defaultdict(list)
    for name in dict.fromkeys(names):
        try:
            extension = descriptor.file.pool.FindExtensionByName(name)
        except KeyError:
            raise DescriptorError(
                "there is no such extension; give its full name, and the file that defines it with the schema",
                extension=name,
                message=descriptor.full_name,
            ) from None
        found[extendee_of(extension).full_name].append(extension)
    return {extendee: tuple(extensions) for extendee, extensions in found.items()}


def extendee_of(extension: FieldDescriptor) -> Descriptor:
    """The message that an extension extends."""
    assert extension.containing_type is not None
    return extension.containing_type


def check_extendees(extensions: Mapping[str, Iterable[FieldDescriptor]], reached: Container[str], message: str) -> None:
    """Raises DescriptorError for an extension of a message that the mapping doesn't hold, or of a message set."""
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
