# Reads the grammar of RFC 8259: texts, and values that are kept as they are.

from libc.stdint cimport int64_t, uint8_t

from schema_mapping.json.kernel.reading cimport Reading


cdef const uint8_t* scan_text(Reading* r, const uint8_t* p, bint* has_escapes) noexcept nogil
cdef bint unescape(Reading* r, const uint8_t* p, const uint8_t* end, int64_t* size) noexcept nogil
cdef const uint8_t* skip_literal(Reading* r, const uint8_t* p) noexcept nogil
cdef const uint8_t* skip_value(Reading* r, const uint8_t* p, int depth) noexcept nogil
