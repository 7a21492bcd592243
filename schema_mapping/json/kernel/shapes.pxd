# The orders of members that values have, and the form that says how a value is written.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.json.kernel.reading cimport Reading
from schema_mapping.json.kernel.tables cimport Node, Tables

cdef enum:
    ORDERS = 16             # of an object, at a time
    LONGEST_ORDER = 4096    # members of an object in another order than the schema's

cdef struct Order:
    int32_t* entries        # members, and minus how many unknown ones
    int64_t size
    int64_t used            # when it was last used

cdef class Shapes:
    cdef Tables tables
    cdef Order* orders          # ORDERS of each object
    cdef int32_t* chosen        # by object: its order in the current value
    cdef int64_t* chosen_in     # by object: the value that it was chosen in
    cdef int32_t* objects       # of the current value, with an order
    cdef int64_t value
    cdef int64_t clock
    cdef uint8_t* text          # of the last form
    cdef int64_t text_size
    cdef uint64_t* forms        # a hash table of forms
    cdef int64_t form_count
    cdef int64_t form_bytes
    cdef int64_t most_forms

    cdef bint note_order(self, Reading* r, const Node* node, const int32_t* order, int64_t size) noexcept nogil
    cdef bint compose(self, Reading* r) noexcept nogil
    cdef bint is_new_form_allowed(self) noexcept nogil
    cdef bint add_word(self, const char* word) noexcept nogil
    cdef bint add_number(self, int64_t number, uint8_t after) noexcept nogil
    cdef bint add_words(self, uint32_t bits, const char** words) noexcept nogil
    cdef bint add_order(self, int32_t object) noexcept nogil
    cdef bint add_nulls(self, Reading* r, int32_t object) noexcept nogil


# Whether no object of this type has an order yet in the current value.
cdef inline bint is_first(Shapes shapes, const Node* node) noexcept nogil:
    return shapes.chosen_in[node.object] != shapes.value
