# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Undoes what parsing left: a oneof's earlier member, an invalid map entry, a value that can't be read."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from schema_mapping.protobuf.kernel.scratch cimport Rows, Scratch
from schema_mapping.protobuf.kernel.tables cimport FIELD_LIST, Field, NODE_CUT, Node, OP_GROUP, OP_MESSAGE


cdef void clear_field(Scratch* s, const Field* field, uint64_t* row) noexcept nogil:
    # Clears a singular field's value, and removes the rows that belong to it.
    row[field.presence >> 6] &= ~(<uint64_t>1 << (field.presence & 63))
    if field.op == OP_MESSAGE or field.op == OP_GROUP:
        clear_message(s, &s.nodes[field.node], row)
    else:
        row[field.slot] = 0


cdef void clear_message(Scratch* s, const Node* node, uint64_t* row) noexcept nogil:
    # Every row that belongs to this message is at the end of its space: no other row was opened since.
    cdef const Field* field
    cdef int i
    row[node.unknown] = 0
    if node.flags & NODE_CUT:
        return
    for i in range(node.first_field, node.first_field + node.field_count):
        field = &s.fields[i]
        if field.oneof >= 0:
            row[field.oneof] = 0
        if field.flags & FIELD_LIST:
            drop_rows(s, field, row[field.slot])
            row[field.slot] = 0
        elif row[field.presence >> 6] >> (field.presence & 63) & 1:
            clear_field(s, field, row)


cdef void drop_rows(Scratch* s, const Field* field, int64_t count) noexcept nogil:
    # Removes the last rows of a list's space, and the rows that belong to them.
    cdef Rows* rows = &s.spaces[field.space]
    cdef int64_t i
    if count == 0:
        return
    if field.node >= 0 and s.nodes[field.node].has_lists:
        for i in range(rows.count - count, rows.count):
            clear_message(s, &s.nodes[field.node], rows.block + i * rows.stride)
    rows.count -= count
    s.words -= count * rows.stride
    memset(rows.block + rows.count * rows.stride, 0, count * rows.stride * 8)
