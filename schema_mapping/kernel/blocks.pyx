# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Memory for columns and values: blocks that are freed are kept for the next run.

The system's allocator gives memory at the heap's end back to the system, and filling fresh pages takes as long as
parsing into them. At most 64 MiB are kept. The functions run under the interpreter's lock.
"""

from pyarrow import foreign_buffer

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept nogil

cdef enum:
    LEAST = 1 << 14         # smaller blocks, and blocks larger than `MOST`, are never kept
    MOST = 1 << 25
    KEPT = 1 << 26
    CLASSES = 4 * 12        # four sizes to each doubling
    MOVED = MOST            # from this size on, the system grows a block in place
    LARGER = 1              # a kept block may be this many sizes larger than needed

# A kept block. It starts with the address of the next kept block of its size.
cdef struct Idle:
    Idle* next

cdef Idle* idle[CLASSES]
cdef int64_t kept_bytes = 0
cdef int64_t used_bytes = 0


cdef inline int size_class(int64_t size) noexcept:
    # The class of the largest size that isn't above `size`.
    cdef int log = 63 - __builtin_clzll(size)
    return 4 * (log - 14) + <int>((size >> (log - 2)) & 3)


cdef inline int64_t class_size(int index) noexcept:
    return <int64_t>(4 + (index & 3)) << (12 + (index >> 2))


cdef void give_all_back() noexcept:
    global kept_bytes
    cdef Idle* block
    cdef int i
    for i in range(CLASSES):
        while idle[i] != NULL:
            block = idle[i]
            idle[i] = block.next
            free(block)
    kept_bytes = 0


cdef void keep(uint8_t* data, int64_t capacity) noexcept:
    # A block that would exceed the limit frees all kept blocks, so that sizes no longer in use are not kept.
    global kept_bytes
    cdef int index
    if capacity < LEAST or capacity > MOST:
        free(data)
        return
    index = size_class(capacity)
    if kept_bytes + class_size(index) > KEPT:
        give_all_back()
    (<Idle*>data).next = idle[index]
    idle[index] = <Idle*>data
    kept_bytes += class_size(index)


cdef uint8_t* take(int64_t size, int64_t* capacity) noexcept:
    # A kept block, or a new one, or NULL if memory is out.
    global kept_bytes
    cdef int index, at
    cdef Idle* block
    if LEAST <= size <= MOST:
        index = size_class(size)
        if class_size(index) < size:
            index += 1
        for at in range(index, min(index + LARGER + 1, CLASSES)):
            block = idle[at]
            if block != NULL:
                idle[at] = block.next
                capacity[0] = class_size(at)
                kept_bytes -= capacity[0]
                return <uint8_t*>block
        if index < CLASSES:
            size = class_size(index)
    capacity[0] = size
    return <uint8_t*>malloc(size)


cdef class Block:
    """Memory that is given back when the last buffer in it is gone."""

    def __dealloc__(self):
        global used_bytes
        if self.data != NULL:
            used_bytes -= self.capacity
            keep(self.data, self.capacity)

    cdef void resize(self, int64_t size) except *:
        """Makes the block `size` bytes large, or a little more. Raises MemoryError."""
        global used_bytes
        cdef uint8_t* data = <uint8_t*>realloc(self.data, max(1, size))
        if data == NULL:
            raise MemoryError
        used_bytes += max(1, size) - self.capacity
        self.data = data
        self.capacity = max(1, size)


cdef Block new_block(int64_t size):
    """A block of at least `size` bytes. Raises MemoryError."""
    global used_bytes
    cdef Block block = Block()
    block.data = take(max(1, size), &block.capacity)
    if block.data == NULL:
        raise MemoryError
    used_bytes += block.capacity
    return block


cdef Block enlarged(Block block, int64_t size):
    """A block of at least `size` bytes with the content of `block`, which is used up. Raises MemoryError."""
    cdef Block larger
    if block.capacity >= MOVED:
        block.resize(size)
        return block
    larger = new_block(size)
    memcpy(larger.data, block.data, block.capacity)
    return larger


cdef object buffer_of(Block block, int64_t start, int64_t size):
    """A part of the block as an Arrow buffer, which keeps the block alive."""
    return foreign_buffer(<size_t>block.data + start, size, block)


def in_use():
    """Bytes of all blocks in use."""
    return used_bytes


def kept():
    """Bytes of all kept blocks."""
    return kept_bytes
