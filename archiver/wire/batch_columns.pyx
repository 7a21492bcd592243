# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The columns of records that have the same value in all rows of a batch, in one block of memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from archiver.wire.arrow_output cimport RecordOutput
from schema_mapping.kernel.blocks cimport Block, new_block

from archiver.wire.columns import RECORDS

cdef enum:
    _LONGS = 4              # the first of the columns
    _APPENDED = 3           # the last of these
    _INTS = 5

cdef int _PLACES[_LONGS + _INTS]
_PLACES = [RECORDS.get_field_index(name) for name in (
    "batch_start", "batch_end", "producer_id", "append_timestamp",
    "timestamp_type", "leader_epoch", "producer_epoch", "base_sequence", "attributes",
)]


cdef inline int64_t _start(int column, int64_t room) noexcept nogil:
    """Where a column lies in a block with room for `room` rows. The validity bits come after the last column."""
    return room * (8 * column if column < _LONGS else 8 * _LONGS + 4 * (column - _LONGS))


cdef class BatchColumns:
    """Collects the columns that come from the headers of batches. `put_batch` adds rows to `at`."""

    def __cinit__(self):
        memset(&self.at, 0, sizeof(Rows))

    cdef int reserve(self, int64_t rows) except -1:
        """Make room for `rows` rows in total."""
        cdef int64_t room, bits
        cdef int column
        cdef Block block
        if rows <= self.room:
            return 0
        room = (max(rows, 2 * self.room) + 7) & ~<int64_t>7
        block = new_block(_start(_LONGS + _INTS, room) + (room >> 3))
        bits = _start(_LONGS + _INTS, room)
        memset(block.data + bits, 0, room >> 3)
        if self.block is not None:
            for column in range(_LONGS + _INTS):
                memcpy(
                    block.data + _start(column, room), self.block.data + _start(column, self.room),
                    self.at.rows * (8 if column < _LONGS else 4),
                )
            memcpy(block.data + bits, self.block.data + _start(_LONGS + _INTS, self.room), self.room >> 3)
        self.block, self.room = block, room
        self._place()
        return 0

    cdef void _place(self) noexcept:
        cdef uint8_t* data = self.block.data
        cdef int64_t room = self.room
        cdef int64_t* longs = <int64_t*>data
        cdef int32_t* ints = <int32_t*>(data + _start(_LONGS, room))
        self.at.batch_start, self.at.batch_end = longs, longs + room
        self.at.producer_id, self.at.append_timestamp = longs + 2 * room, longs + 3 * room
        self.at.timestamp_type, self.at.leader_epoch, self.at.producer_epoch = ints, ints + room, ints + 2 * room
        self.at.base_sequence, self.at.attributes = ints + 3 * room, ints + 4 * room
        self.at.appended = data + _start(_LONGS + _INTS, room)

    cdef int give(self, RecordOutput output) except -1:
        """Hand the columns to `output`. This object must not be used again."""
        cdef int column
        for column in range(_LONGS + _INTS):
            output.put(_PLACES[column], self.at.rows, 1, self.block, _start(column, self.room))
        output.put_validity(_PLACES[_APPENDED], self.at.nulls, self.block, _start(_LONGS + _INTS, self.room))
        return 0
