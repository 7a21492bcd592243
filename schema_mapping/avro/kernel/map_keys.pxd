# Finds keys that come twice in a map.

from libc.stdint cimport int64_t

from schema_mapping.avro.kernel.reading cimport Reading
from schema_mapping.avro.kernel.tables cimport Node


cdef bint find_replaced(Reading* r, const Node* node, int64_t first) noexcept nogil
