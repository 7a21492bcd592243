# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The loop over the batches of a fetch: selects those of the range, checks them, and reads their records into columns.

The loop releases the GIL, except to decompress a batch or to handle an unusual one. No record needs a Python call.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from archiver.wire.arrow_output cimport RecordOutput
from archiver.wire.batch_columns cimport put_batch
from archiver.wire.batch_header cimport Header
from archiver.wire.checksum cimport crc32c
from archiver.wire.message_set cimport append_messages
from archiver.wire.record_batch cimport append_plain, append_records
from archiver.wire.record_sink cimport RecordSink

import numpy as np

from archiver.errors import CorruptBatch
from archiver.wire import attributes
from archiver.wire.batch_header import CHECKSUM_START, HEADER_BYTES, control_type
from archiver.wire.inflate import InflateError
from archiver.wire.wrapper import inflate_wrapper

cdef enum:
    _ROW_COST = 80          # bytes of a record in the columns, without its key, value and headers
    _SHORTEST_RECORD = 7

cdef int32_t _CODEC = attributes.CODEC
cdef int32_t _CONTROL = attributes.CONTROL
cdef int32_t _TRANSACTIONAL = attributes.TRANSACTIONAL
cdef int64_t _CHECKSUM_START = CHECKSUM_START
cdef int64_t _HEADER_BYTES = HEADER_BYTES


cdef inline bint _matches(const Header* header, const uint8_t* batch) noexcept nogil:
    return crc32c(batch + _CHECKSUM_START, header.size - _CHECKSUM_START) == header.crc


cdef class BatchReader:
    """Reads the batches in `octets` with these `headers`, until `chunk` bytes are decoded.

    `aborted` follows the transactions. `inflater` decompresses. A batch of more than `limit` bytes is refused.
    """

    cdef RecordSink sink
    cdef const uint8_t[::1] data
    cdef const Header[::1] headers
    cdef object octets, header_array, inflater, aborted
    cdef int64_t limit, chunk, cost, kept
    cdef int64_t[::1] index, first_row, rows
    cdef uint8_t[::1] in_order
    cdef const uint8_t[::1] records     # the current batch, decompressed
    cdef const uint8_t* opened          # their address; NULL if the batch isn't compressed or isn't opened yet
    cdef int64_t opened_size
    cdef int64_t sound                  # the number of batches with checked checksums
    cdef readonly int64_t done, consumed, start_offset, next_offset

    def __init__(self, octets, headers, aborted, inflater, *, int64_t limit, int64_t chunk):
        self.sink = RecordSink()
        self.octets = self.data = octets
        self.header_array = self.headers = headers
        self.aborted, self.inflater, self.limit, self.chunk = aborted, inflater, limit, chunk
        self.index, self.first_row, self.rows = np.empty((3, len(headers)), np.int64)
        self.in_order = np.empty(len(headers), np.uint8)

    def read(self, int64_t start_offset, bint cut_head):
        """Read the batches that begin at or after `start_offset`; with `cut_head`, also those that straddle it.

        Afterwards, `done` batches are read, which end at byte `consumed`, and the offsets from `start_offset` up to
        `next_offset` (without it) are covered. Raises `CorruptBatch`.
        """
        cdef const Header* header
        cdef bint owned
        self.start_offset = self.next_offset = start_offset
        self._expect()
        while self.done < self.headers.shape[0] and self.cost < self.chunk:
            with nogil:
                self._read_on(self.sink, start_offset)
            if self.done == self.headers.shape[0] or self.cost >= self.chunk:
                break
            header = &self.headers[self.done]
            owned = header.base_offset >= start_offset or cut_head
            if self._read(header, start_offset, owned and header.last_offset >= start_offset):
                self._pass(header)
                if header.last_offset >= start_offset:
                    self.next_offset = header.last_offset + 1
                    if not owned:
                        self.start_offset = self.next_offset

    cdef void _read_on(self, RecordSink sink, int64_t start_offset) noexcept nogil:
        """Read batches without the GIL, up to one that needs Python.

        That one is compressed and not opened yet, or in a transaction, or unusual, or only partly in the range. If
        `sound` is above its place, its checksum was checked.
        """
        cdef const Header* header
        cdef const uint8_t* at
        cdef int64_t cost, size, first_row
        cdef int in_order
        while self.done < self.headers.shape[0] and self.cost < self.chunk:
            header = &self.headers[self.done]
            if self.opened != NULL:
                at, size = self.opened, self.opened_size
            else:
                at, size = &self.data[0] + header.position + _HEADER_BYTES, header.size - _HEADER_BYTES
                if header.magic != 2 or not _matches(header, &self.data[0] + header.position):
                    return
                self.sound = self.done + 1
                if (
                    header.attributes & (_CODEC | _CONTROL | _TRANSACTIONAL)
                    or header.base_offset < start_offset
                    or header.last_offset < start_offset
                ):
                    return
            cost = size + _ROW_COST * <int64_t>header.count
            first_row = sink.at.rows
            if cost > self.limit:
                return
            in_order = append_plain(sink, header, at, size, start_offset)
            if in_order < 0:
                return
            self.cost += cost
            self._keep(first_row, in_order)
            self._pass(header)
            self.next_offset = header.last_offset + 1

    cdef void _pass(self, const Header* header) noexcept nogil:
        """Finish the current batch."""
        self.opened = NULL
        self.done += 1
        self.consumed = header.position + header.size

    cdef int _expect(self) except -1:
        """Make room for the most that the uncompressed batches of this chunk can hold."""
        cdef int64_t index, rows = 0, size = 0
        cdef const Header* header
        for index in range(self.headers.shape[0]):
            header = &self.headers[index]
            if size >= self.chunk:
                break
            if not header.attributes & _CODEC and header.count <= header.size // _SHORTEST_RECORD:
                rows += max(header.count, 0)
                size += header.size
        self.sink.expect(rows, min(size, self.chunk + self.limit))
        return 0

    cdef bint _read(self, const Header* header, int64_t keep_from, bint wanted) except -1:
        """Read a batch: its records from `keep_from` on if it is `wanted`, and its part in transactions in any case.

        Returns False if the batch was only opened; `_read_on` then reads it.
        """
        cdef int64_t end = header.position + header.size
        if header.magic != 2:
            if wanted:
                self._append_messages(header, keep_from)
            return True
        if self.opened != NULL:
            self._append(header, self.opened, self.opened_size, keep_from)
            return True
        if self.sound <= self.done:
            raise CorruptBatch(
                "A batch does not match its checksum", base_offset=header.base_offset, position=header.position
            )
        if header.attributes & (_CONTROL | _TRANSACTIONAL) and self.aborted:
            self.aborted.reach(header.last_offset)
        if header.attributes & _CONTROL:
            if self.aborted and control_type(self.octets[header.position + _HEADER_BYTES : end]) == attributes.ABORT_MARKER:
                self.aborted.end(header.producer_id)
            return True
        if not wanted or header.count == 0 or (
            header.attributes & _TRANSACTIONAL and self.aborted and self.aborted.includes(header.producer_id)
        ):
            return True
        if header.attributes & _CODEC:
            self._open(header)
            return False
        self._append(header, &self.data[0] + header.position + _HEADER_BYTES, header.size - _HEADER_BYTES, keep_from)
        return True

    cdef int _open(self, const Header* header) except -1:
        """Decompress the records of the current batch, and make room for them."""
        cdef int32_t codec = header.attributes & _CODEC
        cdef int64_t start = header.position + _HEADER_BYTES
        cdef int64_t rows = self.sink.at.rows + header.count, size = self.sink.at.value.used
        try:
            self.records = self.inflater.inflate(codec, self.octets[start : header.position + header.size].data)
        except InflateError as error:
            raise CorruptBatch(
                f"The compressed records of a batch are bad: {error}", base_offset=header.base_offset, codec=codec
            ) from error
        self.opened_size = self.records.shape[0]
        self.opened = &self.records[0] if self.opened_size else &self.data[0] + start
        if 0 <= header.count <= self.opened_size // _SHORTEST_RECORD:
            self.sink.expect(rows, size + self.opened_size)
        return 0

    cdef int _append(self, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from) except -1:
        cdef int64_t first_row = self.sink.at.rows
        self._charge(header, size + _ROW_COST * <int64_t>header.count)
        self._keep(first_row, append_records(self.sink, header, at, size, keep_from))
        return 0

    cdef int _append_messages(self, const Header* header, int64_t keep_from) except -1:
        cdef const uint8_t[::1] messages
        cdef const uint8_t* at = &self.data[0] + header.position
        cdef int64_t size = header.size, first_row = self.sink.at.rows
        cdef bint in_order
        if header.count < 0:
            messages = inflate_wrapper(self.inflater, self.octets[header.position :][:size], self.header_array[self.done])
            size = messages.shape[0]
            at = &messages[0] if size else NULL
        in_order = append_messages(self.sink, header, at, size, keep_from)
        self._charge(header, size + _ROW_COST * (self.sink.at.rows - first_row))
        self._keep(first_row, in_order)
        return 0

    cdef int _charge(self, const Header* header, int64_t cost) except -1:
        if cost > self.limit:
            raise CorruptBatch(
                f"A batch takes {cost} bytes decoded, the limit is {self.limit}", base_offset=header.base_offset
            )
        self.cost += cost
        return 0

    cdef void _keep(self, int64_t first_row, bint in_order) noexcept nogil:
        """Note the rows of the batch, if it has any."""
        cdef int64_t rows = self.sink.at.rows - first_row
        if rows:
            self.index[self.kept], self.first_row[self.kept], self.rows[self.kept] = self.done, first_row, rows
            self.in_order[self.kept] = in_order
            self.kept += 1
            put_batch(&self.sink.batches.at, &self.headers[self.done], rows)

    def finish(self):
        """The records, and their timestamps in ms, which are valid as long as the reader. Then for each batch with rows: its
        place among the headers, its first row, its number of rows, and whether all rows have times that never fall."""
        cdef RecordOutput output = RecordOutput()
        cdef int64_t rows_read = self.sink.at.rows
        # pyarrow would release the interpreter's lock four times on the way to numpy
        timestamps = np.asarray(<int64_t[:max(rows_read, 1)]>self.sink.at.timestamp)[:rows_read]
        self.sink.give(output)
        index, first_row, rows = np.asarray(self.index), np.asarray(self.first_row), np.asarray(self.rows)
        kept = [each[: self.kept] for each in (index, first_row, rows, np.asarray(self.in_order))]
        return output, timestamps, *kept
