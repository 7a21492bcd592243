# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Computes the one column of well-known types from their parsed parts, for all rows of a chunk at once.

If the column's value doesn't give the parts back, or if there are unknown fields, the whole value is kept raw.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from schema_mapping.protobuf.kernel.duplicates cimport root_rows
from schema_mapping.protobuf.kernel.json_text cimport json_text
from schema_mapping.protobuf.kernel.scratch cimport NO_MEMORY, Rows
from schema_mapping.protobuf.kernel.tables cimport NODE_JSON, NODE_TIMESTAMP, NODE_WRAPPER

cdef extern from *:
    ctypedef long long int128 "__int128"

cdef int64_t MICROS = 1_000_000
cdef int64_t FIRST_MICRO = -62_135_596_800_000_000      # start of the year 1
cdef int64_t LAST_MICRO = 253_402_300_799_999_999       # end of the year 9999


cdef bint settle_native(Scratch* s, const Native* native, Json* json, uint8_t* root_flags) noexcept nogil:
    # Sets the bytes of `root_flags` to 1 for values that must be kept raw. Without room, returns False and sets the
    # failure.
    cdef const Rows* rows = &s.spaces[native.space]
    cdef uint32_t* roots = NULL
    cdef uint64_t* row
    cdef bint exact
    cdef bint fine = True
    cdef int64_t i
    for i in range(rows.count):
        row = rows.block + i * rows.stride
        if native.presence >= 0 and not row[native.presence >> 6] >> (native.presence & 63) & 1:
            continue
        if native.kind & NODE_JSON:
            fine = json_text(json, native.kind, row[native.slot], &row[native.slot])
            exact = json.exact
        else:
            exact = native.kind == NODE_WRAPPER or settle_time(native, row)
            exact = exact and row[native.unknown] == 0
        if fine and not exact and roots == NULL:
            roots = root_rows(s, native.space)
            if roots == NULL:
                s.failure = NO_MEMORY
                fine = False
        if not fine:
            break
        if not exact:
            root_flags[roots[i]] = 1
    free(roots)
    return fine


cdef inline bint settle_time(const Native* native, uint64_t* row) noexcept nogil:
    # Replaces the seconds by microseconds, and the nanoseconds by the rest of them. Returns whether the
    # columns give seconds and nanoseconds back. Rounds as Protobuf's own conversions do: a timestamp down, a duration
    # toward zero.
    cdef int64_t seconds = <int64_t>row[native.slot]
    cdef int64_t nanos = <int32_t><uint32_t>row[native.nanos]
    cdef int64_t first = FIRST_MICRO if native.kind == NODE_TIMESTAMP else INT64_MIN
    cdef int64_t last = LAST_MICRO if native.kind == NODE_TIMESTAMP else INT64_MAX
    cdef int64_t part = (nanos - (999 if nanos < 0 and native.kind == NODE_TIMESTAMP else 0)) // 1000
    cdef int128 sum = <int128>seconds * MICROS + part
    cdef int64_t micros = <int64_t>sum
    cdef int64_t again, rest
    cdef int64_t kept = nanos - part * 1000
    row[native.nanos] = 0
    if not first <= sum <= last:
        row[native.slot] = <uint64_t>(0 if native.fits >= 0 else last if seconds > 0 else first)
        return False
    if native.fits >= 0:
        row[native.fits >> 6] |= <uint64_t>1 << (native.fits & 63)
    row[native.slot] = <uint64_t>micros
    if native.kind == NODE_TIMESTAMP:
        split_timestamp(micros, &again, &rest)
    else:
        split_duration(micros, &again, &rest)
    if native.keeps_nanos:
        row[native.nanos] = <uint64_t>kept
        rest += kept
    return again == seconds and rest == nanos


cdef void split_timestamp(int64_t micros, int64_t* seconds, int64_t* nanos) noexcept nogil:
    # The nanoseconds count forward, also before 1970.
    seconds[0] = micros // MICROS
    nanos[0] = micros % MICROS
    if nanos[0] < 0:
        nanos[0] += MICROS
        seconds[0] -= 1
    nanos[0] *= 1000


cdef void split_duration(int64_t micros, int64_t* seconds, int64_t* nanos) noexcept nogil:
    # Seconds and nanoseconds have the same sign.
    seconds[0] = micros // MICROS
    nanos[0] = micros % MICROS * 1000
