# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Growing Arrow columns: numbers, bytes, bits and offsets, with validity from the first null on."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from schema_mapping.kernel.blocks cimport Block, buffer_of, enlarged, new_block

cdef enum:
    FIRST_ROWS = 256
    FIRST_BYTES = 4096
    BITS = 0            # a column's blocks
    VALUES = 1
    DATA = 2


cdef uint8_t* grown(GrowingColumns owner, Growing* column, int part, int64_t size, int64_t zeros_from) noexcept:
    # A column's block with room for `size` bytes. From `zeros_from` on it is zero. NULL if memory is out.
    cdef int at = 3 * column.number + part
    cdef Block block = owner.blocks[at]
    try:
        block = new_block(size) if block is None else enlarged(block, size)
    except MemoryError:
        owner.trouble = OUT_OF_MEMORY
        return NULL
    owner.blocks[at] = block
    if zeros_from < size:
        memset(block.data + zeros_from, 0, size - zeros_from)
    return block.data


cdef inline int64_t value_bytes(const Growing* column, int64_t rows) noexcept nogil:
    if column.kind == COLUMN_BITS:
        return 0
    if column.kind == COLUMN_BOOLEAN:
        return (rows + 7) >> 3
    if column.kind == COLUMN_NUMBERS:
        return rows * column.width
    return (rows + 1) * 4


cdef bint make_room(GrowingColumns owner, Growing* column, int64_t row) noexcept:
    cdef int64_t first = FIRST_ROWS if column.width <= 16 else 1 + 16 * FIRST_ROWS // column.width
    cdef int64_t room = max(first, 2 * column.room, row + 1)
    cdef int64_t before = value_bytes(column, column.room) if column.values != NULL else 0
    if value_bytes(column, row + 1) > INT32_MAX:
        owner.trouble = COLUMN_TOO_LARGE  # fewer values at a time take less: list items may be many for few bytes
        return False
    if column.bits != NULL:
        column.bits = grown(owner, column, BITS, (room + 7) >> 3, (column.room + 7) >> 3)
        if column.bits == NULL:
            return False
    if column.kind != COLUMN_BITS:
        # Numbers of null rows are zero; offsets are filled by `fill`.
        column.values = grown(owner, column, VALUES, value_bytes(column, room), before)
        if column.values == NULL:
            return False
    column.room = room
    return True


cdef bint open_bits(GrowingColumns owner, Growing* column) noexcept:
    # Makes the validity, with all earlier rows valid.
    cdef int64_t i
    column.bits = grown(owner, column, BITS, (column.room + 7) >> 3, 0)
    if column.bits == NULL:
        return False
    memset(column.bits, 0xFF, column.rows >> 3)
    for i in range(column.rows & ~<int64_t>7, column.rows):
        column.bits[i >> 3] |= 1 << (i & 7)
    return True


cdef bint make_ready(void* owner, Growing* column, int64_t row) noexcept nogil:
    with gil:
        return fill(<GrowingColumns>owner, column, row)


cdef bint fill(GrowingColumns owner, Growing* column, int64_t row) noexcept:
    # Makes room for the row, and makes the rows before it null that the column doesn't have yet.
    cdef int32_t* offsets
    cdef int64_t i
    if row >= column.room and not make_room(owner, column, row):
        return False
    if column.rows == row:
        return True
    if column.bits == NULL and not open_bits(owner, column):
        return False
    if column.kind == COLUMN_BYTES or column.kind == COLUMN_LIST:
        offsets = <int32_t*>column.values
        for i in range(column.rows, row):
            offsets[i + 1] = <int32_t>column.data_size
    column.rows = row
    return True


cdef bint make_data_room(void* owner, Growing* column, int64_t size) noexcept nogil:
    with gil:
        return more_data(<GrowingColumns>owner, column, size)


cdef void note_too_large(void* owner) noexcept nogil:
    # A list has more items than its offsets can say: fewer values at a time have fewer.
    with gil:
        (<GrowingColumns>owner).trouble = COLUMN_TOO_LARGE


cdef bint more_data(GrowingColumns owner, Growing* column, int64_t size) noexcept:
    cdef int64_t needed = column.data_size + size
    if needed > INT32_MAX:
        owner.trouble = COLUMN_TOO_LARGE
        return False
    column.data_room = max(<int64_t>FIRST_BYTES, 2 * column.data_room, needed)
    column.data = grown(owner, column, DATA, column.data_room, column.data_room)
    return column.data != NULL


cdef inline void clear_bits(uint8_t* bits, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t i = start
    while i < end and i & 7:
        bits[i >> 3] &= <uint8_t>~(1 << (i & 7))
        i += 1
    if i < end:
        memset(bits + (i >> 3), 0, ((end + 7) >> 3) - (i >> 3))


cdef void take_back(Growing* column, int64_t rows) noexcept nogil:
    # Forgets all rows from this one on.
    if column.rows <= rows:
        return
    if column.bits != NULL:
        clear_bits(column.bits, rows, column.rows)
    if column.kind == COLUMN_BOOLEAN:
        clear_bits(column.values, rows, column.rows)
    elif column.kind == COLUMN_NUMBERS:
        memset(column.values + rows * column.width, 0, (column.rows - rows) * column.width)
    elif column.kind != COLUMN_BITS:
        column.data_size = (<int32_t*>column.values)[rows]
    column.rows = rows


cdef class GrowingColumns:
    """The columns of one decoding run."""

    def __cinit__(self, size_t places, int count):
        cdef const ColumnPlace* columns = <const ColumnPlace*>places
        cdef int i
        self.count = count
        self.columns = <Growing*>calloc(self.count, sizeof(Growing))
        if self.columns == NULL:
            raise MemoryError
        self.blocks = [None] * (3 * self.count)
        for i in range(self.count):
            self.columns[i].kind = columns[i].kind
            self.columns[i].space = columns[i].space
            self.columns[i].width = columns[i].width
            self.columns[i].number = i

    def __dealloc__(self):
        free(self.columns)

    cdef object buffers(self, int number, int64_t rows):
        # The buffers of a column with this many rows: validity, values and data. Each is None if it isn't there: the
        # validity if no row is null, all three if all rows are.
        cdef Growing* column = &self.columns[number]
        if column.rows == 0:
            return None
        if column.rows < rows and not fill(self, column, rows):
            raise MemoryError
        return (
            self.cut(column, BITS, (rows + 7) >> 3),
            self.cut(column, VALUES, value_bytes(column, rows)),
            self.cut(column, DATA, column.data_size),
        )

    cdef object cut(self, const Growing* column, int part, int64_t size):
        cdef Block block = self.blocks[3 * column.number + part]
        if block is None:
            return None
        if block.capacity > size + size // 4 + 4096:
            block.resize(size)
        return buffer_of(block, 0, size)


COLUMNS = {
    "BITS": COLUMN_BITS,
    "BOOLEAN": COLUMN_BOOLEAN,
    "NUMBERS": COLUMN_NUMBERS,
    "BYTES": COLUMN_BYTES,
    "LIST": COLUMN_LIST,
}
