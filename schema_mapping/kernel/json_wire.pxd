# The bytes of a google.protobuf.Struct, Value or ListValue whose JSON text is given.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

# A string, a number, or the begin or end of what holds others.
cdef struct Token:
    int32_t kind
    int32_t escaped         # the string has escapes
    const uint8_t* text     # of the string, between its quotes
    int64_t size            # of that text
    uint64_t value          # of a number its bits, of a string its size without escapes

# Memory that is used again for the next text.
cdef struct JsonReader:
    const uint8_t* p
    const uint8_t* end
    Token* tokens
    int64_t count
    int64_t capacity
    uint8_t* block
    int64_t block_size
    bint no_memory

cdef const uint8_t* json_bytes(
    JsonReader* r, int kind, const uint8_t* text, int64_t size, int64_t* length
) noexcept nogil
cdef void free_reader(JsonReader* r) noexcept nogil
