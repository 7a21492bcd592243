# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads forms: words, the orders of objects (`3:1,0,-2,2`), and members that are written as null (`3!0,1`)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.json.kernel.numbers cimport STYLES
from schema_mapping.json.kernel.reading cimport ESCAPES
from schema_mapping.json.kernel.shapes import WORDS
from schema_mapping.json.kernel.tables cimport Node, Tables

cdef enum:
    LARGEST_NUMBER = 1 << 24
    MOST_INDENT = 16

cdef struct Word:
    const char* text
    int64_t size

cdef Word escape_words[ESCAPES]
cdef Word space_words[8]
cdef Word style_words[STYLES]

_kept_words = {name: [word.encode() for word in words] for name, words in WORDS.items()}
for _at in range(ESCAPES):
    escape_words[_at] = Word(<const char*>_kept_words["escapes"][_at], len(_kept_words["escapes"][_at]))
for _at in range(8):
    space_words[_at] = Word(<const char*>_kept_words["spaces"][_at], len(_kept_words["spaces"][_at]))
for _at in range(STYLES):
    style_words[_at] = Word(<const char*>_kept_words["styles"][_at], len(_kept_words["styles"][_at]))


cdef inline bint is_word(const Word* word, const uint8_t* p, int64_t size) noexcept nogil:
    return word.size == size and memcmp(word.text, p, size) == 0


cdef const uint8_t* read_small(const uint8_t* p, const uint8_t* end, int32_t* number) noexcept nogil:
    cdef const uint8_t* start = p
    number[0] = 0
    while p < end and 48 <= p[0] <= 57 and number[0] < LARGEST_NUMBER:
        number[0] = 10 * number[0] + p[0] - 48
        p += 1
    return NULL if p == start else p


cdef class Forms:
    """The form of the current row. Equal forms of rows one after the other are read once."""

    def __cinit__(self, Tables tables not None):
        self.tables = tables
        self.order_start = <int32_t*>calloc(tables.object_count + 1, sizeof(int32_t))
        self.order_size = <int32_t*>calloc(tables.object_count + 1, sizeof(int32_t))
        self.is_null = <uint8_t*>calloc(tables.member_count + 1, 1)
        if self.order_start == NULL or self.order_size == NULL or self.is_null == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        free(self.entries)
        free(self.order_start)
        free(self.order_size)
        free(self.is_null)
        free(self.text)

    cdef void clear(self) noexcept nogil:
        self.escapes = self.spaces = 0
        self.indent = self.style = 0
        self.nulls = False
        self.entry_count = self.text_size = 0
        memset(self.order_start, 0xFF, (self.tables.object_count + 1) * sizeof(int32_t))
        memset(self.is_null, 0, self.tables.member_count + 1)

    cdef bint read(self, const uint8_t* text, int64_t size) noexcept nogil:
        # Returns False if the form isn't known, or memory is out.
        cdef const uint8_t* p = text
        cdef const uint8_t* end = text + size
        cdef uint8_t* kept
        if size == self.text_size and (size == 0 or memcmp(text, self.text, size) == 0):
            return True
        self.clear()
        while p < end:
            p = self.read_part(p, end)
            if p == NULL:
                self.clear()
                return False
        if self.text_room < size:
            kept = <uint8_t*>realloc(self.text, size)
            if kept == NULL:
                return False
            self.text, self.text_room = kept, size
        if size:
            memcpy(self.text, text, size)
        self.text_size = size
        return True

    cdef const uint8_t* read_part(self, const uint8_t* p, const uint8_t* end) noexcept nogil:
        cdef const uint8_t* start = p
        cdef const Node* node
        cdef int32_t object = 0
        cdef int32_t entry = 0
        cdef bint is_order, is_negative
        if not 48 <= p[0] <= 57:
            while p < end and p[0] != 32:
                p += 1
            if not self.read_word(start, p - start):
                return NULL
            return p + (p < end)
        p = read_small(p, end, &object)
        if p >= end or object >= self.tables.object_count or (p[0] != 58 and p[0] != 33):
            return NULL
        node = &self.tables.nodes[self.tables.objects[object]]
        is_order = p[0] == 58
        p += 1
        if is_order:
            self.order_start[object] = <int32_t>self.entry_count
            self.order_size[object] = 0
        while p < end and p[0] != 32:
            is_negative = p[0] == 45
            p = read_small(p + is_negative, end, &entry)
            if p == NULL or (is_negative and (not is_order or entry == 0)) or (entry >= node.count and not is_negative):
                return NULL
            if not is_order:
                self.is_null[node.member + entry] = 1
            else:
                if not self.push(-entry if is_negative else entry):
                    return NULL
                self.order_size[object] += 1
            if p < end and p[0] == 44:
                p += 1
        return p + (p < end)

    cdef bint push(self, int32_t entry) noexcept nogil:
        cdef int64_t room = 2 * self.entry_room + 64
        cdef int32_t* entries
        if self.entry_count == self.entry_room:
            entries = <int32_t*>realloc(self.entries, room * sizeof(int32_t))
            if entries == NULL:
                return False
            self.entries, self.entry_room = entries, room
        self.entries[self.entry_count] = entry
        self.entry_count += 1
        return True

    cdef bint read_word(self, const uint8_t* p, int64_t size) noexcept nogil:
        cdef int i
        for i in range(ESCAPES):
            if is_word(&escape_words[i], p, size):
                self.escapes |= 1 << i
                return True
        for i in range(8):
            if is_word(&space_words[i], p, size):
                self.spaces |= 1 << i
                return True
        for i in range(STYLES):
            if is_word(&style_words[i], p, size):
                self.style = i
                return True
        if size == 5 and memcmp(p, b"nulls", 5) == 0:
            self.nulls = True
            return True
        if size > 7 and memcmp(p, b"indent=", 7) == 0:
            return read_small(p + 7, p + size, &self.indent) == p + size and self.indent <= MOST_INDENT
        return False
