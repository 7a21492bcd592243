# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Memory of columns and values, kept for the next run when it is given back.

The system's allocator returns what lies at the heap's end, and filling fresh pages takes as long as parsing into them.
At most 64 MiB stay with the process. All of it under the interpreter's lock.
"""

from pyarrow import foreign_buffer

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept nogil

cdef enum:
    LEAST = 1 << 14         # smaller ones, and larger ones than `MOST`, are the system's alone
    MOST = 1 << 25
    KEPT = 1 << 26
    CLASSES = 4 * 12        # four sizes to each doubling
    MOVED = MOST            # one that large grows where it is, by way of the system
    LARGER = 1              # how many sizes too large a block may be

# A block that nobody uses: it starts with the address of the next of its size.
cdef struct Idle:
    Idle* next

cdef Idle* idle[CLASSES]
cdef int64_t kept_bytes = 0
cdef int64_t used_bytes = 0


cdef inline int size_class(int64_t size) noexcept:
    # Of the largest size that is no larger.
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
    # What is too much takes all with it: sizes that nobody asks for any more don't stay for ever.
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
    # A kept block, or a new one, or NULL.
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
    """Memory that the last owner of a buffer in it gives back."""

    def __dealloc__(self):
        global used_bytes
        if self.data != NULL:
            used_bytes -= self.capacity
            keep(self.data, self.capacity)

    cdef void resize(self, int64_t size) except *:
        """Makes the block `size` bytes large, or a little more; MemoryError."""
        global used_bytes
        cdef uint8_t* data = <uint8_t*>realloc(self.data, max(1, size))
        if data == NULL:
            raise MemoryError
        used_bytes += max(1, size) - self.capacity
        self.data = data
        self.capacity = max(1, size)


cdef Block new_block(int64_t size):
    """At least `size` bytes; MemoryError."""
    global used_bytes
    cdef Block block = Block()
    block.data = take(max(1, size), &block.capacity)
    if block.data == NULL:
        raise MemoryError
    used_bytes += block.capacity
    return block


cdef Block enlarged(Block block, int64_t size):
    """A block of at least `size` bytes with the content of this one, which is spent; MemoryError."""
    cdef Block larger
    if block.capacity >= MOVED:
        block.resize(size)
        return block
    larger = new_block(size)
    memcpy(larger.data, block.data, block.capacity)
    return larger


cdef object buffer_of(Block block, int64_t start, int64_t size):
    """A part of the block as Arrow's buffer, which holds on to it."""
    return foreign_buffer(<size_t>block.data + start, size, block)


def in_use():
    """Bytes of blocks that somebody holds."""
    return used_bytes


def kept():
    """Bytes of blocks that nobody holds."""
    return kept_bytes
