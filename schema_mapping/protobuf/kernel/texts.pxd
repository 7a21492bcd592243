from libc.stdint cimport uint8_t, uint64_t

from schema_mapping.protobuf.kernel.check cimport search_enum
from schema_mapping.protobuf.kernel.scratch cimport Scratch

cdef uint64_t digits_text(Scratch* s, int number) noexcept nogil
cdef uint64_t mended_text(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil


cdef inline uint64_t enum_text(Scratch* s, int enumeration, int number) noexcept nogil:
    # The slot of the value's name, or of its number in decimal digits. Zero, which is no text, if memory is out.
    cdef int found = search_enum(s, enumeration, number)
    if found >= 0:
        return s.enum_names[found]
    return digits_text(s, number)
