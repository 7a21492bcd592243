# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads JSON text to tokens, as strictly as RFC 8259."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp

from schema_mapping.protobuf.kernel.json_numbers cimport read_number
from schema_mapping.protobuf.kernel.json_strings cimport read_escape


cdef bint read_tokens(JsonReader* r, const uint8_t* text, int64_t size) noexcept nogil:
    # Returns False if the text is no JSON, is nested too deeply, or memory is out.
    r.p = text
    r.end = text + size
    r.count = 0
    r.no_memory = False
    skip_spaces(r)
    if not read_value(r, DEEPEST):
        return False
    skip_spaces(r)
    return r.p == r.end


cdef inline void skip_spaces(JsonReader* r) noexcept nogil:
    while r.p < r.end and (r.p[0] == 32 or r.p[0] == 10 or r.p[0] == 13 or r.p[0] == 9):
        r.p += 1


cdef inline bint skip(JsonReader* r, uint8_t byte) noexcept nogil:
    # Skips the byte and the spaces around it.
    skip_spaces(r)
    if r.p == r.end or r.p[0] != byte:
        return False
    r.p += 1
    skip_spaces(r)
    return True


cdef Token* add_token(JsonReader* r, int kind) noexcept nogil:
    cdef int64_t capacity
    cdef void* grown
    cdef Token* token
    if r.count == r.capacity:
        capacity = 2 * r.capacity + 64
        grown = realloc(r.tokens, capacity * sizeof(Token))
        if grown == NULL:
            r.no_memory = True
            return NULL
        r.tokens = <Token*>grown
        r.capacity = capacity
    token = &r.tokens[r.count]
    token.kind = kind
    token.size = 0
    r.count += 1
    return token


cdef bint read_value(JsonReader* r, int depth) noexcept nogil:
    if r.p == r.end or depth == 0:
        return False
    if r.p[0] == b"{":
        return read_object(r, depth)
    elif r.p[0] == b"[":
        return read_array(r, depth)
    elif r.p[0] == b'"':
        return read_string(r, T_STRING)
    elif r.p[0] == b"n":
        return read_word(r, b"null", 4, T_NULL)
    elif r.p[0] == b"t":
        return read_word(r, b"true", 4, T_TRUE)
    elif r.p[0] == b"f":
        return read_word(r, b"false", 5, T_FALSE)
    return read_digits(r)


cdef bint read_object(JsonReader* r, int depth) noexcept nogil:
    if add_token(r, T_OPEN_OBJECT) == NULL or not skip(r, b"{"):
        return False
    if r.p < r.end and r.p[0] == b"}":
        r.p += 1
        return add_token(r, T_CLOSE_OBJECT) != NULL
    while True:
        if r.p == r.end or r.p[0] != b'"' or not read_string(r, T_KEY) or not skip(r, b":"):
            return False
        if not read_value(r, depth - 1):
            return False
        if skip(r, b"}"):
            return add_token(r, T_CLOSE_OBJECT) != NULL
        if not skip(r, b","):
            return False


cdef bint read_array(JsonReader* r, int depth) noexcept nogil:
    if add_token(r, T_OPEN_ARRAY) == NULL or not skip(r, b"["):
        return False
    if r.p < r.end and r.p[0] == b"]":
        r.p += 1
        return add_token(r, T_CLOSE_ARRAY) != NULL
    while True:
        if not read_value(r, depth - 1):
            return False
        if skip(r, b"]"):
            return add_token(r, T_CLOSE_ARRAY) != NULL
        if not skip(r, b","):
            return False


cdef bint read_word(JsonReader* r, const char* word, int size, int kind) noexcept nogil:
    if r.end - r.p < size or memcmp(r.p, word, size) != 0:
        return False
    r.p += size
    return add_token(r, kind) != NULL


cdef bint read_digits(JsonReader* r) noexcept nogil:
    cdef const uint8_t* start = r.p
    cdef Token* token = add_token(r, T_NUMBER)
    if token == NULL:
        return False
    while r.p < r.end and (
        48 <= r.p[0] <= 57 or r.p[0] == b"-" or r.p[0] == b"+" or r.p[0] == b"." or r.p[0] == b"e" or r.p[0] == b"E"
    ):
        r.p += 1
    return read_number(start, r.p - start, &token.value)


cdef bint read_string(JsonReader* r, int kind) noexcept nogil:
    # Reads a string, from one quote to the other.
    cdef Token* token = add_token(r, kind)
    cdef uint8_t plain[4]
    cdef int step
    if token == NULL:
        return False
    r.p += 1
    token.text = r.p
    token.escaped = False
    token.value = 0
    while r.p < r.end and r.p[0] != b'"':
        if r.p[0] == b"\\":
            token.escaped = True
            token.value += read_escape(r.p, r.end, plain, &step)
            if step == 0:
                return False
            r.p += step
        elif r.p[0] < 32:
            return False
        else:
            token.value += 1
            r.p += 1
    token.size = r.p - token.text
    if r.p == r.end:
        return False
    r.p += 1
    return True
