# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Makes texts that aren't on the wire: digits of enum numbers without a name, and ill-formed UTF-8 repaired."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from schema_mapping.kernel.octets cimport utf8_step, write_decimal
from schema_mapping.protobuf.kernel.scratch cimport Scratch, reserve_spill, spilled_slot


cdef uint64_t digits_text(Scratch* s, int number) noexcept nogil:
    cdef uint8_t* out = reserve_spill(s, 24)
    cdef uint64_t start = s.spill_size
    cdef int size
    if out == NULL:
        return 0
    size = write_decimal(out, number)
    s.spill_size += size
    return spilled_slot(start, size)


cdef uint64_t mended_text(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # The bytes as text, with U+FFFD for each ill-formed piece, as Unicode recommends.
    cdef uint8_t* first = reserve_spill(s, 3 * (end - p))
    cdef uint8_t* out = first
    cdef uint64_t start = s.spill_size
    cdef int step
    if first == NULL:
        return 0
    while p < end:
        step = utf8_step(p, end)
        if step > 0:
            memcpy(out, p, step)
            out += step
            p += step
        else:
            out[0] = 0xEF
            out[1] = 0xBF
            out[2] = 0xBD
            out += 3
            p -= step
    s.spill_size += out - first
    return spilled_slot(start, out - first)
