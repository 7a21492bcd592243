# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""JSON text back to the bytes of Struct, Value or ListValue: read forward into tokens, written backward from them.

Written in canonical form, members in the order of the text.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from schema_mapping.kernel.json_numbers cimport read_number
from schema_mapping.kernel.tables cimport NODE_LIST_VALUE, NODE_STRUCT
from schema_mapping.kernel.wire cimport varint_size, write_varint

cdef enum:
    DEEPEST = 128
    TOKEN_BYTES = 48        # more than any token takes beside its text: four tags, four lengths, a number

cdef enum TokenKind:
    T_NULL
    T_TRUE
    T_FALSE
    T_NUMBER
    T_STRING
    T_KEY
    T_OPEN_OBJECT
    T_OPEN_ARRAY
    T_CLOSE_OBJECT
    T_CLOSE_ARRAY

# An object or array being written, from its end.
cdef struct Frame:
    bint is_object
    uint8_t* closed         # where it ends
    uint8_t* member         # where the member being written ends


cdef const uint8_t* json_bytes(
    JsonReader* r, int kind, const uint8_t* text, int64_t size, int64_t* length
) noexcept nogil:
    # They stay until the next call. NULL where the text is no JSON of this kind, or memory is out.
    cdef uint8_t* p
    r.p = text
    r.end = text + size
    r.count = 0
    r.no_memory = False
    skip_spaces(r)
    if not read_value(r, DEEPEST):
        return NULL
    skip_spaces(r)
    if r.p != r.end or not is_of_kind(kind, r.tokens[0].kind):
        return NULL
    if not make_block(r, r.count * TOKEN_BYTES + size):
        return NULL
    p = write_tokens(r, kind & (NODE_STRUCT | NODE_LIST_VALUE))
    length[0] = r.block + r.block_size - p
    return p


cdef void free_reader(JsonReader* r) noexcept nogil:
    free(r.tokens)
    free(r.block)


cdef inline bint is_of_kind(int kind, int first) noexcept nogil:
    if kind & NODE_STRUCT:
        return first == T_OPEN_OBJECT
    return first == T_OPEN_ARRAY if kind & NODE_LIST_VALUE else True


cdef inline void skip_spaces(JsonReader* r) noexcept nogil:
    while r.p < r.end and (r.p[0] == 32 or r.p[0] == 10 or r.p[0] == 13 or r.p[0] == 9):
        r.p += 1


cdef inline bint skip(JsonReader* r, uint8_t byte) noexcept nogil:
    # The byte, and spaces around it.
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
    # From one quote to the other.
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


cdef inline int hex_value(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else -1


cdef int read_hex(const uint8_t* p, const uint8_t* end) noexcept nogil:
    # What follows a \u; -1 where it's no four digits.
    cdef int result = 0
    cdef int i, digit
    if end - p < 4:
        return -1
    for i in range(4):
        digit = hex_value(p[i])
        if digit < 0:
            return -1
        result = result << 4 | digit
    return result


cdef int read_escape(const uint8_t* p, const uint8_t* end, uint8_t* out, int* step) noexcept nogil:
    # The bytes (the answer is how many) that an escape of `step` bytes stands for; `step` is 0 where it is none.
    cdef int code, low
    step[0] = 0
    if end - p < 2:
        return 0
    if p[1] != b"u":
        out[0] = short_escape(p[1])
        step[0] = 2 if out[0] else 0
        return 1
    code = read_hex(p + 2, end)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return 0
    step[0] = 6
    if 0xD800 <= code < 0xDC00:
        low = read_hex(p + 8, end) if end - p >= 12 and p[6] == b"\\" and p[7] == b"u" else -1
        step[0] = 12 if 0xDC00 <= low < 0xE000 else 0
        code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
    return write_utf8(out, code) if step[0] else 0


cdef inline uint8_t short_escape(uint8_t byte) noexcept nogil:
    if byte == b"n":
        return 10
    elif byte == b"t":
        return 9
    elif byte == b"r":
        return 13
    elif byte == b"b":
        return 8
    elif byte == b"f":
        return 12
    return byte if byte == b'"' or byte == b"\\" or byte == b"/" else 0


cdef inline int write_utf8(uint8_t* out, int code) noexcept nogil:
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0] = <uint8_t>(0xC0 | code >> 6)
        out[1] = <uint8_t>(0x80 | (code & 0x3F))
        return 2
    if code < 0x10000:
        out[0] = <uint8_t>(0xE0 | code >> 12)
        out[1] = <uint8_t>(0x80 | (code >> 6 & 0x3F))
        out[2] = <uint8_t>(0x80 | (code & 0x3F))
        return 3
    out[0] = <uint8_t>(0xF0 | code >> 18)
    out[1] = <uint8_t>(0x80 | (code >> 12 & 0x3F))
    out[2] = <uint8_t>(0x80 | (code >> 6 & 0x3F))
    out[3] = <uint8_t>(0x80 | (code & 0x3F))
    return 4


cdef bint make_block(JsonReader* r, int64_t size) noexcept nogil:
    if size <= r.block_size:
        return True
    free(r.block)
    r.block_size = 0
    r.block = <uint8_t*>realloc(NULL, 2 * size)
    if r.block == NULL:
        r.no_memory = True
        return False
    r.block_size = 2 * size
    return True


cdef uint8_t* write_tokens(JsonReader* r, bint is_bare) noexcept nogil:
    # Backward; `is_bare`: the outermost object or array is no Value but a Struct or ListValue itself.
    cdef Frame frames[DEEPEST + 1]
    cdef int open = 0       # frames[0] stands for what is around the text
    cdef uint8_t* p = r.block + r.block_size
    cdef const Token* token
    cdef int64_t i
    for i in range(r.count - 1, -1, -1):
        token = &r.tokens[i]
        if token.kind == T_KEY:
            p = put_key(p, token, frames[open].member)
            continue
        if token.kind == T_OPEN_OBJECT or token.kind == T_OPEN_ARRAY:
            open -= 1
            if open == 0 and is_bare:
                continue
            p = put_head(p, 0x2A if token.kind == T_OPEN_OBJECT else 0x32, frames[open + 1].closed)
        else:
            frames[open].member = p
            if token.kind == T_CLOSE_OBJECT or token.kind == T_CLOSE_ARRAY:
                open += 1
                frames[open].is_object = token.kind == T_CLOSE_OBJECT
                frames[open].closed = p
                continue
            p = put_scalar(p, token)
        if open:
            p = put_head(p, 0x12 if frames[open].is_object else 0x0A, frames[open].member)
    return p


cdef inline uint8_t* put_head(uint8_t* p, uint8_t tag, const uint8_t* end) noexcept nogil:
    # The tag and length of what was written since `end`.
    cdef uint64_t size = end - p
    p -= varint_size(size)
    write_varint(p, size)
    p -= 1
    p[0] = tag
    return p


cdef inline uint8_t* put_key(uint8_t* p, const Token* token, const uint8_t* entry_end) noexcept nogil:
    # The key of an entry whose value is written, and the entry's head.
    cdef const uint8_t* end = p
    p = put_head(put_text(p, token), 0x0A, end)
    return put_head(p, 0x0A, entry_end)


cdef uint8_t* put_scalar(uint8_t* p, const Token* token) noexcept nogil:
    # The one field of a Value.
    cdef const uint8_t* end = p
    if token.kind == T_STRING:
        return put_head(put_text(p, token), 0x1A, end)
    if token.kind == T_NUMBER:
        p -= 8
        memcpy(p, &token.value, 8)
        p -= 1
        p[0] = 0x11
        return p
    p -= 2
    p[0] = 0x08 if token.kind == T_NULL else 0x20
    p[1] = token.kind == T_TRUE
    return p


cdef uint8_t* put_text(uint8_t* p, const Token* token) noexcept nogil:
    cdef const uint8_t* text = token.text
    cdef const uint8_t* end = text + token.size
    cdef uint8_t* out
    cdef int step
    p -= token.value
    if not token.escaped:
        memcpy(p, text, token.size)
        return p
    out = p
    while text < end:
        if text[0] == b"\\":
            out += read_escape(text, end, out, &step)
            text += step
        else:
            out[0] = text[0]
            out += 1
            text += 1
    return p
