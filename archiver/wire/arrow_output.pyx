# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Hands all columns of records to Arrow at once, by its C data interface (arrow.apache.org/docs/format/CDataInterface.html).

If arrays were made one by one, each would release the interpreter's lock and wait for it again: threads would queue.
"""

from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_New, PyCapsule_SetContext
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memset

import pyarrow as pa

from archiver.wire.columns import HEADER_TYPE, RECORDS

cdef extern from "Python.h":
    int Py_IsInitialized() nogil

cdef int _LIST = RECORDS.get_field_index("headers")
cdef int _BUFFERS[ARRAYS]
_BUFFERS = [kind.num_buffers for kind in (*RECORDS.types, HEADER_TYPE, pa.binary(), pa.binary(), HEADER_TYPE)]


cdef class RecordOutput:
    """Collects the columns of records. Kernels `put` all of them here, then `pyarrow.record_batch` takes them once.

    The columns share their memory. It is freed when the last one is gone.
    """

    def __cinit__(self):
        cdef int place
        memset(self.arrays, 0, sizeof(self.arrays))
        memset(self.buffers, 0, sizeof(self.buffers))
        self.blocks = []
        for place in range(ARRAYS):
            self.arrays[place].n_buffers = _BUFFERS[place]
            self.arrays[place].buffers = self.buffers[place]
        for place in range(HEADER):
            self.children[place] = &self.arrays[place]
        self.arrays[RECORD].n_children, self.arrays[RECORD].children = HEADER, self.children
        self.children[HEADER] = &self.arrays[HEADER]
        self.arrays[_LIST].n_children, self.arrays[_LIST].children = 1, &self.children[HEADER]
        self.children[HEADER_KEY], self.children[HEADER_VALUE] = &self.arrays[HEADER_KEY], &self.arrays[HEADER_VALUE]
        self.arrays[HEADER].n_children, self.arrays[HEADER].children = 2, &self.children[HEADER_KEY]

    cdef int put(self, int place, int64_t rows, int buffer, Block block, int64_t start=0) except -1:
        """Set a buffer of the array at `place`, with `rows` rows, to the bytes of the block from `start` on."""
        self.blocks.append(block)
        self.arrays[place].length = rows
        self.buffers[place][buffer] = block.data + start
        return 0

    cdef int put_validity(self, int place, int64_t nulls, Block block, int64_t start=0) except -1:
        """Set the validity bits of an array, if it has nulls."""
        self.arrays[place].null_count = nulls
        if nulls:
            self.put(place, self.arrays[place].length, 0, block, start)
        return 0

    def __arrow_c_array__(self, requested_schema=None):
        """The schema and the columns as capsules. The schema is `RECORDS`, whatever is requested."""
        cdef int place
        if self.arrays[RECORD].private_data != NULL:
            raise ValueError("these columns were handed over before")
        capsule = PyCapsule_New(&self.arrays[RECORD], "arrow_array", _drop)
        PyCapsule_SetContext(capsule, <void*>self)
        Py_INCREF(self)
        for place in range(ARRAYS):
            self.arrays[place].private_data, self.arrays[place].release = <void*>self, _release
            Py_INCREF(self)
        return RECORDS.__arrow_c_schema__(), capsule


cdef void _release(ArrowArray* array) noexcept nogil:
    # Whoever moves an array out of its parent sets `release` to null in the parent.
    cdef int64_t index
    for index in range(array.n_children):
        if array.children[index].release != NULL:
            array.children[index].release(array.children[index])
    array.release = NULL
    if Py_IsInitialized():
        _let_go(array.private_data)


cdef void _let_go(void* output) noexcept with gil:
    Py_DECREF(<object>output)


cdef void _drop(object capsule) noexcept:
    cdef RecordOutput output = <RecordOutput>PyCapsule_GetContext(capsule)
    if output.arrays[RECORD].release != NULL:
        _release(&output.arrays[RECORD])
    Py_DECREF(output)
