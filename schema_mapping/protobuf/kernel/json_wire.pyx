# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes JSON text as a Struct, Value or ListValue: reads it forward to tokens, and writes these backward.

The bytes are in canonical form, with members in the order of the text.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from schema_mapping.protobuf.kernel.json_strings cimport read_escape
from schema_mapping.protobuf.kernel.json_tokens cimport (
    DEEPEST, JsonReader, T_CLOSE_ARRAY, T_CLOSE_OBJECT, T_KEY, T_NULL, T_NUMBER, T_OPEN_ARRAY, T_OPEN_OBJECT, T_STRING,
    T_TRUE, Token, read_tokens,
)
from schema_mapping.protobuf.kernel.tables cimport NODE_LIST_VALUE, NODE_STRUCT
from schema_mapping.protobuf.kernel.wire cimport varint_size, write_varint

cdef enum:
    TOKEN_BYTES = 48        # more bytes than a token takes besides its text: four tags, four lengths, a number

# An object or array that is being written, from its end.
cdef struct Frame:
    bint is_object
    uint8_t* closed         # where it ends
    uint8_t* member         # where the member being written ends


cdef const uint8_t* json_bytes(
    JsonReader* r, int kind, const uint8_t* text, int64_t size, int64_t* length
) noexcept nogil:
    # The bytes stay valid until the next call. NULL if the text is no JSON of this kind, or memory is out.
    cdef uint8_t* p
    if not read_tokens(r, text, size) or not is_of_kind(kind, r.tokens[0].kind):
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


cdef bint make_block(JsonReader* r, int64_t size) noexcept nogil:
    if size <= r.block_size:
        return True
    free(r.block)
    r.block_size = 0
    r.block = <uint8_t*>malloc(2 * size)
    if r.block == NULL:
        r.no_memory = True
        return False
    r.block_size = 2 * size
    return True


cdef uint8_t* write_tokens(JsonReader* r, bint is_bare) noexcept nogil:
    # Writes backward. `is_bare` says that the outermost object or array is a Struct or ListValue, not a Value.
    cdef Frame frames[DEEPEST + 1]
    cdef int open = 0       # frames[0] stands for what surrounds the text
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
    # Writes the tag and length of the bytes from `p` to `end`.
    cdef uint64_t size = end - p
    p -= varint_size(size)
    write_varint(p, size)
    p -= 1
    p[0] = tag
    return p


cdef inline uint8_t* put_key(uint8_t* p, const Token* token, const uint8_t* entry_end) noexcept nogil:
    # Writes the key of an entry whose value is written, then the entry's tag and length.
    cdef const uint8_t* end = p
    p = put_head(put_text(p, token), 0x0A, end)
    return put_head(p, 0x0A, entry_end)


cdef uint8_t* put_scalar(uint8_t* p, const Token* token) noexcept nogil:
    # Writes the one field of a Value.
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
