# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Memory of decoded columns: made as large as the whole run will probably need, and trimmed at the end of the run."""

from libc.stdint cimport int64_t

from schema_mapping.kernel.blocks cimport Block, buffer_of, enlarged, new_block


cdef bint grow_buffer(void* owner, Memory* memory, int64_t size) noexcept with gil:
    cdef ColumnMemory columns = <ColumnMemory>owner
    cdef int64_t wanted = columns.foresee(size)
    cdef Block block = columns.blocks[memory.index]
    try:
        block = new_block(wanted) if block is None else enlarged(block, wanted)
    except MemoryError:
        return False
    columns.blocks[memory.index] = block
    memory.data = block.data
    memory.capacity = wanted
    return True


cdef class ColumnMemory:
    """The buffers of one run's columns. Their sizes are estimated from how much of the run is done."""

    def __cinit__(self, *, int count):
        self.blocks = [None] * count
        self.grower.grow = grow_buffer
        self.grower.owner = <void*>self

    cdef int64_t foresee(self, int64_t size):
        # Estimates the final size of a buffer that needs `size` bytes now: in proportion to the values that are done,
        # and at most `size` plus twice the bytes of input that are left.
        cdef int64_t done = max(1, self.values_done)
        cdef int64_t wanted = <int64_t>(<double>size * 1.03 * max(1, self.values_total) / done) + 1024
        cdef int64_t most = size + 2 * max(0, self.bytes_total - self.bytes_done) + 4096
        return max(min(wanted, most), size + size // 4, 256)

    cdef object cut(self, const Memory* memory, int64_t size):
        # Much spare room is given back to the system, a little is left.
        cdef Block block = self.blocks[memory.index]
        if block is None:
            return None
        if memory.capacity > size + size // 4 + 4096:
            block.resize(size)
        return buffer_of(block, 0, size)
