# cython: language_level=3
"""The values that a walk has found, side by side: numbers as words of 64 bits, all others as views of their bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from archiver.storage.parquet.columns.form cimport (
    AS_BITS, AS_DECIMALS, AS_LARGE_TEXTS, BY_FLOAT, DECIMAL_WIDTH, Form,
)
from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend
from archiver.storage.parquet.columns.texts cimport Text
from archiver.storage.parquet.columns.walk cimport Walk, is_set, offset_at


cdef inline int64_t _place(const Walk* walk, int64_t index) noexcept nogil:
    return walk.base + index if walk.is_dense else (<const int64_t*>walk.places.data)[index]


cdef inline int take_numbers(Bytes* out, const Walk* walk, const Form* form) except -1 nogil:
    """Numbers with their sign, floats as their bits."""
    cdef const uint8_t* data = <const uint8_t*>walk.leaf.buffers[1]
    cdef int64_t index
    cdef int64_t* to
    out.size = 0
    to = <int64_t*>extend(out, walk.alive * 8)
    if form.memory == AS_BITS:
        for index in range(walk.alive):
            to[index] = is_set(data, _place(walk, index))
    elif form.width == 8:
        if walk.is_dense:
            memcpy(to, data + walk.base * 8, <size_t>walk.alive * 8)
        else:
            for index in range(walk.alive):
                to[index] = (<const int64_t*>data)[_place(walk, index)]
    elif form.order == BY_FLOAT:
        for index in range(walk.alive):
            to[index] = (<const uint32_t*>data)[_place(walk, index)]
    elif walk.is_dense:
        for index in range(walk.alive):
            to[index] = (<const int32_t*>data)[walk.base + index]
    else:
        for index in range(walk.alive):
            to[index] = (<const int32_t*>data)[_place(walk, index)]
    return 0


cdef inline int64_t take_texts(Bytes* out, const Walk* walk, const Form* form) except -1 nogil:
    """Texts, or values of so many bytes. Return how many bytes they have."""
    cdef const uint8_t* data
    cdef const int32_t* ends
    cdef int64_t index, place, start, total = 0
    cdef int width = DECIMAL_WIDTH if form.memory == AS_DECIMALS else form.width
    cdef bint is_large = form.memory == AS_LARGE_TEXTS
    cdef Text* to
    out.size = 0
    to = <Text*>extend(out, walk.alive * <int64_t>sizeof(Text))
    if width:
        data = <const uint8_t*>walk.leaf.buffers[1]
        for index in range(walk.alive):
            to[index].at, to[index].size = data + _place(walk, index) * width, width
        return walk.alive * width
    data = <const uint8_t*>walk.leaf.buffers[2]
    if walk.is_dense and not is_large:
        ends = <const int32_t*>walk.leaf.buffers[1] + walk.base
        for index in range(walk.alive):
            to[index].at, to[index].size = data + ends[index], ends[index + 1] - ends[index]
        return ends[walk.alive] - ends[0]
    for index in range(walk.alive):
        place = _place(walk, index)
        start = offset_at(walk.leaf, is_large, place)
        to[index].at, to[index].size = data + start, offset_at(walk.leaf, is_large, place + 1) - start
        total += to[index].size
    return total
