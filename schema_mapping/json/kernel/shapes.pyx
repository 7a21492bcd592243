# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The orders of members that values have, and the form that says how a value is written.

An object whose members are in the schema's order, or lack some of them, has no order here. Orders are kept while values
fit them, so that equal producers have equal forms. The number of forms is limited; so is the work for each value.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strlen

from schema_mapping.json.kernel.reading cimport ESCAPES, Reading
from schema_mapping.json.kernel.numbers import STYLE_NAMES
from schema_mapping.json.kernel.numbers cimport STYLES
from schema_mapping.json.kernel.tables cimport Node, Tables
from schema_mapping.kernel.octets cimport hash_text, write_decimal

cdef enum:
    LONGEST_FORM = 4096
    MOST_FORMS = 4096
    MOST_BYTES = 1 << 20
    SLOTS = 1 << 14         # of the hash table: a power of two, and much more than MOST_FORMS

cdef const char* ESCAPE_WORDS[ESCAPES]
cdef const char* SPACE_WORDS[8]
cdef const char* STYLE_WORDS[STYLES]

WORDS = {
    "escapes": (
        "ascii", "upper", "slash", "html", "lines", "long", "delete", "quotes", "pairs", "next", "single", "equals",
    ),
    "spaces": ("comma", "colon", "before", "empty", "tab", "inline", "flat", "newline"),
    "styles": STYLE_NAMES,
}
"""The words of forms: the name of each bit of the kernel, and the styles of numbers."""

_kept_words = [word.encode() for words in WORDS.values() for word in words]
for _at in range(ESCAPES):
    ESCAPE_WORDS[_at] = <const char*>_kept_words[_at]
for _at in range(8):
    SPACE_WORDS[_at] = <const char*>_kept_words[ESCAPES + _at]
for _at in range(STYLES):
    STYLE_WORDS[_at] = <const char*>_kept_words[ESCAPES + 8 + _at]


cdef bint fits(const Order* order, const int32_t* members, int64_t size) noexcept nogil:
    # Whether members are written in this order, as the encoder does.
    cdef int64_t done = 0
    cdef int64_t i
    for i in range(order.size):
        if done < size and members[done] == order.entries[i]:
            done += 1
        elif order.entries[i] < 0:
            return False
    return done == size or (done == size - 1 and members[done] < 0)


cdef bint extend(Order* order, const int32_t* members, int64_t size) noexcept nogil:
    # Adds the members that an order lacks after the members that they follow. Returns False if it contradicts.
    cdef int32_t merged[LONGEST_ORDER]
    cdef int64_t count = 0
    cdef int64_t at = 0
    cdef int64_t i, later
    cdef int32_t* entries
    for i in range(size):
        if members[i] < 0:
            if i == size - 1:
                break
            return False
        later = at
        while later < order.size and order.entries[later] != members[i]:
            later += 1
        if later < order.size:
            if count + later - at >= LONGEST_ORDER:
                return False
            memcpy(&merged[count], order.entries + at, (later - at) * 4)
            count += later - at
            at = later + 1
        else:
            later = 0
            while later < at and order.entries[later] != members[i]:
                later += 1
            if later < at:
                return False
        if count >= LONGEST_ORDER:
            return False
        merged[count] = members[i]
        count += 1
    if count + order.size - at > LONGEST_ORDER:
        return False
    memcpy(&merged[count], order.entries + at, (order.size - at) * 4)
    count += order.size - at
    entries = <int32_t*>malloc(max(count, <int64_t>1) * 4)
    if entries == NULL:
        return False
    memcpy(entries, merged, count * 4)
    free(order.entries)
    order.entries, order.size = entries, count
    return fits(order, members, size)


cdef bint has(const Order* order, int32_t member) noexcept nogil:
    cdef int64_t i
    for i in range(order.size):
        if order.entries[i] == member:
            return True
    return False


cdef void add_earlier(Reading* r, const Node* node, Order* order) noexcept nogil:
    # Adds the members that earlier objects of the value have: these were in the schema's order.
    cdef int32_t members[2]
    cdef int32_t size = 0
    cdef int32_t i
    for i in range(node.count):
        if r.member_in[node.member + i] < r.first_serial:
            continue
        members[size] = i
        if not has(order, i) and not extend(order, members, size + 1):
            return
        members[0], size = i, 1


cdef class Shapes:
    """The orders and forms of one decoding run."""

    def __cinit__(self, Tables tables not None, *, int64_t most_forms=MOST_FORMS):
        cdef int count = max(tables.object_count, 1)
        self.tables = tables
        self.most_forms = min(most_forms, MOST_FORMS)
        self.orders = <Order*>calloc(count * ORDERS, sizeof(Order))
        self.chosen = <int32_t*>calloc(count, sizeof(int32_t))
        self.chosen_in = <int64_t*>calloc(count, sizeof(int64_t))
        self.objects = <int32_t*>calloc(count, sizeof(int32_t))
        self.text = <uint8_t*>malloc(2 * LONGEST_FORM)
        self.forms = <uint64_t*>calloc(SLOTS, sizeof(uint64_t))
        if NULL in (self.orders, self.chosen, self.chosen_in, self.objects, self.text, self.forms):
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        if self.orders != NULL:
            for i in range(max(self.tables.object_count, 1) * ORDERS):
                free(self.orders[i].entries)
        free(self.orders)
        free(self.chosen)
        free(self.chosen_in)
        free(self.objects)
        free(self.text)
        free(self.forms)

    cdef bint note_order(self, Reading* r, const Node* node, const int32_t* order, int64_t size) noexcept nogil:
        # Finds or makes the order of an object's members. Returns False if memory is out. All objects of a type have
        # one order in a value.
        cdef Order* orders = self.orders + node.object * ORDERS
        cdef int32_t oldest = 0
        cdef int32_t choice = -1
        cdef int32_t i
        cdef int32_t* entries
        self.clock += 1
        if size > LONGEST_ORDER:
            r.loose = True
            return True
        if self.chosen_in[node.object] == self.value:
            i = self.chosen[node.object]
            if fits(&orders[i], order, size) or extend(&orders[i], order, size):
                orders[i].used = self.clock
                return True
        for i in range(ORDERS):
            if orders[i].entries != NULL and fits(&orders[i], order, size):
                choice = i
                break
            if orders[i].used < orders[oldest].used:
                oldest = i
        if choice < 0:
            for i in range(ORDERS):
                if orders[i].entries != NULL and orders[i].used == self.clock - 1 and extend(&orders[i], order, size):
                    choice = i
                    break
        if choice < 0:
            if size and order[size - 1] < 0:
                size -= 1
            entries = <int32_t*>malloc(max(size, <int64_t>1) * 4)
            if entries == NULL:
                return False
            memcpy(entries, order, size * 4)
            free(orders[oldest].entries)
            orders[oldest].entries, orders[oldest].size = entries, size
            choice = oldest
        orders[choice].used = self.clock
        if self.chosen_in[node.object] != self.value:
            self.chosen_in[node.object] = self.value
            self.objects[r.seen.orders] = node.object
            r.seen.orders += 1
            add_earlier(r, node, &orders[choice])
        self.chosen[node.object] = choice
        return True

    cdef bint add_word(self, const char* word) noexcept nogil:
        cdef int64_t size = <int64_t>strlen(word)
        if self.text_size + size + 1 > LONGEST_FORM:
            return False
        if self.text_size:
            self.text[self.text_size] = 32
            self.text_size += 1
        memcpy(self.text + self.text_size, word, size)
        self.text_size += size
        return True

    cdef bint add_number(self, int64_t number, uint8_t after) noexcept nogil:
        if self.text_size + 24 > LONGEST_FORM:
            return False
        self.text_size += write_decimal(self.text + self.text_size, number)
        self.text[self.text_size] = after
        self.text_size += 1
        return True

    cdef bint add_words(self, uint32_t bits, const char** words) noexcept nogil:
        cdef int i
        for i in range(ESCAPES):
            if bits >> i & 1 and not self.add_word(words[i]):
                return False
        return True

    cdef bint add_order(self, int32_t object) noexcept nogil:
        cdef const Order* order = &self.orders[object * ORDERS + self.chosen[object]]
        cdef int64_t i
        if not self.add_word(b"") or not self.add_number(object, 58):
            return False
        for i in range(order.size):
            if not self.add_number(order.entries[i], 44):
                return False
        if order.size:
            self.text_size -= 1
        return True

    cdef bint add_nulls(self, Reading* r, int32_t object) noexcept nogil:
        cdef const Node* node = &r.nodes[self.tables.objects[object]]
        cdef int i
        if not self.add_word(b"") or not self.add_number(object, 33):
            return False
        for i in range(node.count):
            if r.null_member[node.member + i] and not self.add_number(i, 44):
                return False
        self.text_size -= 1
        return True

    cdef bint compose(self, Reading* r) noexcept nogil:
        # Composes the form of the current value in `text`: nothing for the default. Returns False if it is too long.
        cdef int style = 0
        cdef int32_t i
        self.text_size = 0
        if r.seen.spaces and not self.add_words(r.seen.spaces, SPACE_WORDS):
            return False
        if r.seen.indent and (not self.add_word(b"indent=") or not self.add_number(r.seen.indent, 32)):
            return False
        if r.seen.indent:
            self.text_size -= 1
        if r.seen.escapes and not self.add_words(r.seen.escapes, ESCAPE_WORDS):
            return False
        if r.seen.styles:
            while not r.seen.styles >> style & 1:
                style += 1
        if style and not self.add_word(STYLE_WORDS[style]):
            return False
        if r.seen.nulls and r.seen.absent == 0 and not self.add_word(b"nulls"):
            return False
        for i in range(r.seen.orders):
            if not self.add_order(self.objects[i]):
                return False
        if r.seen.nulls and r.seen.absent:
            for i in range(self.tables.object_count):
                if r.null_members[i] and not self.add_nulls(r, i):
                    return False
        return True

    cdef bint is_new_form_allowed(self) noexcept nogil:
        # Whether the composed form may be used: it was used before, or there may be more forms.
        cdef uint64_t hash = <uint64_t>hash_text(self.text, self.text_size, 1) << 32
        cdef int64_t at
        hash |= hash_text(self.text, self.text_size, 2) | 1
        at = (hash >> 32) & (SLOTS - 1)
        while self.forms[at]:
            if self.forms[at] == hash:
                return True
            at = (at + 1) & (SLOTS - 1)
        if self.form_count >= self.most_forms or self.form_bytes + self.text_size > MOST_BYTES:
            return False
        self.forms[at] = hash
        self.form_count += 1
        self.form_bytes += self.text_size
        return True
