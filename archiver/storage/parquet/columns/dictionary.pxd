# cython: language_level=3
"""The dictionary of a column chunk: each distinct value has a place, in the order in which they came.

Values are texts, or numbers as words of 64 bits. A table of open addresses finds them; a slot has half of a value's
hash beside its place, so that values are compared only where they most likely are equal.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, release
from archiver.storage.parquet.columns.texts cimport Text, are_equal, hashed, mixed

cdef enum:
    FIRST_SLOTS = 1024


cdef struct Dictionary:
    uint64_t key            # of the hashes: random, so that no producer can choose values that are slow to find
    uint64_t* slots         # the upper half of a hash, and a place + 1; 0 is free
    int64_t slot_count      # a power of two
    int64_t slot_room
    int64_t count
    int64_t size            # bytes of its page
    Bytes texts             # Text[]
    Bytes words             # uint64_t[]
    Bytes pages             # uint32_t[]: the last page in which a value was seen; for extremes


cdef inline int _clear(Dictionary* dictionary, int64_t slot_count) except -1 nogil:
    cdef uint64_t* moved
    if slot_count > dictionary.slot_room:
        moved = <uint64_t*>realloc(dictionary.slots, <size_t>slot_count * 8)
        if moved == NULL:
            with gil:
                raise MemoryError
        dictionary.slots, dictionary.slot_room = moved, slot_count
    dictionary.slot_count = slot_count
    memset(dictionary.slots, 0, <size_t>slot_count * 8)
    return 0


cdef inline int restart(Dictionary* dictionary) except -1 nogil:
    """Forget all values."""
    dictionary.count = dictionary.size = 0
    dictionary.texts.size = dictionary.words.size = dictionary.pages.size = 0
    return _clear(dictionary, FIRST_SLOTS)


cdef inline void give_back(Dictionary* dictionary) noexcept nogil:
    free(dictionary.slots)
    dictionary.slots = NULL
    dictionary.slot_room = 0
    release(&dictionary.texts)
    release(&dictionary.words)
    release(&dictionary.pages)


cdef inline uint64_t _slot(uint64_t hash, int64_t place) noexcept nogil:
    return hash >> 32 << 32 | <uint64_t>(place + 1)


cdef inline int _insert(Dictionary* dictionary, uint64_t hash, int64_t place) noexcept nogil:
    cdef uint64_t mask = <uint64_t>dictionary.slot_count - 1, at = hash & mask
    while dictionary.slots[at]:
        at = (at + 1) & mask
    dictionary.slots[at] = _slot(hash, place)
    return 0


cdef inline int _grow(Dictionary* dictionary, bint is_text) except -1 nogil:
    cdef int64_t place
    _clear(dictionary, dictionary.slot_count * 4)
    for place in range(dictionary.count):
        if is_text:
            _insert(dictionary, hashed((<Text*>dictionary.texts.data)[place], dictionary.key), place)
        else:
            _insert(dictionary, mixed((<uint64_t*>dictionary.words.data)[place], dictionary.key), place)
    return 0


cdef inline int64_t _added(Dictionary* dictionary, uint64_t hash, int64_t size, bint is_text) except -1 nogil:
    """Take a place for a value of so many bytes in the dictionary's page. The caller has stored the value."""
    (<uint32_t*>extend(&dictionary.pages, 4))[0] = 0
    dictionary.count += 1
    dictionary.size += size
    if dictionary.count * 2 > dictionary.slot_count:
        _grow(dictionary, is_text)
    else:
        _insert(dictionary, hash, dictionary.count - 1)
    return dictionary.count - 1


cdef inline int64_t place_of_text(Dictionary* dictionary, Text text, int64_t more) except -1 nogil:
    """The place of a text. `more` is what its page needs beside its bytes."""
    cdef uint64_t hash = hashed(text, dictionary.key), mask = <uint64_t>dictionary.slot_count - 1, at = hash & mask
    cdef uint64_t slot = dictionary.slots[at]
    cdef int64_t place
    while slot:
        if slot >> 32 == hash >> 32:
            place = <int64_t><uint32_t>slot - 1
            if are_equal((<Text*>dictionary.texts.data)[place], text):
                return place
        at = (at + 1) & mask
        slot = dictionary.slots[at]
    (<Text*>extend(&dictionary.texts, sizeof(Text)))[0] = text
    return _added(dictionary, hash, text.size + more, True)


cdef inline int64_t place_of_word(Dictionary* dictionary, uint64_t word, int64_t width) except -1 nogil:
    """The place of a number that takes so many bytes."""
    cdef uint64_t hash = mixed(word, dictionary.key), mask = <uint64_t>dictionary.slot_count - 1, at = hash & mask
    cdef uint64_t slot = dictionary.slots[at]
    cdef int64_t place
    while slot:
        if slot >> 32 == hash >> 32:
            place = <int64_t><uint32_t>slot - 1
            if (<uint64_t*>dictionary.words.data)[place] == word:
                return place
        at = (at + 1) & mask
        slot = dictionary.slots[at]
    (<uint64_t*>extend(&dictionary.words, 8))[0] = word
    return _added(dictionary, hash, width, False)
