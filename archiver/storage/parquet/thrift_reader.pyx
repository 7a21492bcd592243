# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Reads structs of Thrift's compact protocol from bytes that may be damaged.

Structs in a list are only stepped over, and read when somebody asks for them: most of a footer is of no use.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from archiver.storage.parquet.compact_bytes cimport (
    DEEPEST, FALSE, I16, I32, I64, LIST, MAP, SET, STOP, STRUCT, TRUE, Reader, field, integer, list_size, pass_bytes,
    pass_value, size_of,
)

from archiver.storage.parquet.compact_thrift import ThriftError

cdef enum:
    _KINDS = 16
    _USUAL = 32     # identifiers below have their fields' names ready

cdef list _FIELDS = [(identifier, kind) for identifier in range(_USUAL) for kind in range(_KINDS)]

cdef struct Source:
    Reader reader
    int64_t size


cdef inline int64_t _place(const Source* source) noexcept:
    return source.size - (source.reader.end - source.reader.at)


cdef inline int _check(const Source* source) except -1:
    if source.reader.broken:
        raise ThriftError
    return 0


cdef class Structs:
    """The structs in a list. Each has been stepped over, so that reading it doesn't fail."""

    cdef object _data
    cdef list _starts
    cdef int _depth

    def __len__(self):
        return len(self._starts)

    def __getitem__(self, Py_ssize_t index):
        if not 0 <= index < len(self._starts):
            raise IndexError(index)
        return _read(self._data, self._starts[index], self._depth)[0]


cdef tuple _list(object data, Source* source, int depth):
    cdef int kind = 0
    cdef uint64_t each, count = list_size(&source.reader, &kind)
    cdef list found = []
    cdef Structs structs
    _check(source)
    if kind != STRUCT:
        for each in range(count):
            found.append(_value(data, source, kind, depth, True))
        return kind, found
    for each in range(count):
        found.append(_place(source))
        pass_value(&source.reader, STRUCT, depth, True)
        _check(source)
    structs = Structs.__new__(Structs)
    structs._data, structs._starts, structs._depth = data, found, depth + 1
    return kind, structs


cdef object _value(object data, Source* source, int kind, int depth, bint is_element):
    """A value in what is so deep. Truths among elements have a byte; those of fields are their kind."""
    cdef int64_t start, number
    if kind == TRUE or kind == FALSE:
        if not is_element:
            return kind == TRUE
        pass_bytes(&source.reader, 1)
        _check(source)
        return source.reader.at[-1] == TRUE
    if kind == I16 or kind == I32 or kind == I64:
        number = integer(&source.reader)
        _check(source)
        return number
    if (kind == LIST or kind == SET or kind == STRUCT) and depth >= DEEPEST:
        raise ThriftError
    if kind == LIST or kind == SET:
        return _list(data, source, depth + 1)
    if kind == STRUCT:
        return _struct(data, source, depth + 1)
    if kind == MAP:     # Parquet has none
        pass_value(&source.reader, kind, depth, is_element)
        _check(source)
        return None
    number = <int64_t>size_of(&source.reader, kind)
    start = _place(source)
    pass_bytes(&source.reader, <uint64_t>number)
    _check(source)
    return data[start : start + number]


cdef inline object _field(int64_t identifier, int kind):
    return _FIELDS[identifier * _KINDS + kind] if 0 <= identifier < _USUAL else (identifier, kind)


cdef dict _struct(object data, Source* source, int depth):
    cdef dict fields = {}
    cdef int64_t identifier = 0
    cdef int kind
    while True:
        kind = field(&source.reader, &identifier)
        if kind == STOP:
            _check(source)
            return fields
        fields[_field(identifier, TRUE if kind == FALSE else kind)] = _value(data, source, kind, depth, False)


cdef tuple _read(object data, int64_t at, int depth):
    cdef Py_buffer view
    cdef Source source
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= at <= view.len:
            raise ThriftError
        source.size = view.len
        source.reader.at = <const uint8_t*>view.buf + at
        source.reader.end = <const uint8_t*>view.buf + view.len
        source.reader.broken = False
        return _struct(data, &source, depth), _place(&source)
    finally:
        PyBuffer_Release(&view)


def read_struct(data, Py_ssize_t at=0):
    """Read the struct that begins at `at`. Return its fields, and where it ends. Raises ThriftError."""
    return _read(data, at, 0)
