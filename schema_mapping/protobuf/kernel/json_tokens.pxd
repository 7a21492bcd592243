# Reads JSON text to a list of tokens.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    DEEPEST = 128       # nested objects and arrays

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

# A scalar, a key, or the start or end of an object or array.
cdef struct Token:
    int32_t kind
    int32_t escaped         # the string has escapes
    const uint8_t* text     # of the string, between its quotes
    int64_t size            # of that text
    uint64_t value          # a number's bits, or a string's size without escapes

# A reader. Its memory is used again for the next text.
cdef struct JsonReader:
    const uint8_t* p
    const uint8_t* end
    Token* tokens
    int64_t count
    int64_t capacity
    uint8_t* block
    int64_t block_size
    bint no_memory

cdef bint read_tokens(JsonReader* r, const uint8_t* text, int64_t size) noexcept nogil
