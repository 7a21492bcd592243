"""What generated Python code imports for `archiver/options.proto`: its message, and the option `column`."""

from google.protobuf import descriptor_pool
from google.protobuf.internal import builder

from schema_mapping.protobuf.column_options import options_file

DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(options_file().SerializeToString())

builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())
