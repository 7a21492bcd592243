# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Reads structs of Thrift's compact protocol from bytes that may be damaged: each is checked before it is read.

Structs in a list are only stepped over, and read when somebody asks for them: most of a footer is of no use.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int64_t, uint8_t, uint64_t

from archiver.storage.parquet.compact_thrift import ThriftError

cdef enum:          # kinds of values, as in compact_thrift.py
    _STOP = 0
    _BOOL = 1
    _FALSE = 2
    _I8 = 3
    _I16 = 4
    _I32 = 5
    _I64 = 6
    _DOUBLE = 7
    _BINARY = 8
    _LIST = 9
    _SET = 10
    _MAP = 11
    _STRUCT = 12
    _UUID = 13

cdef enum:
    _KINDS = 16
    _DEEPEST = 12
    _LONG_LIST = 15
    _USUAL = 32     # identifiers below have their fields' names ready

cdef list _FIELDS = [(identifier, kind) for identifier in range(_USUAL) for kind in range(_KINDS)]

cdef struct Bytes:
    const uint8_t* data
    int64_t size
    int64_t at


cdef inline int _byte(Bytes* source) except -1:
    if source.at >= source.size:
        raise ThriftError
    source.at += 1
    return source.data[source.at - 1]


cdef inline uint64_t _varint(Bytes* source) except? 0:
    """A number of at most ten bytes, modulo 2^64, as Thrift's own readers have it."""
    cdef uint64_t found = 0
    cdef int shift, byte
    for shift in range(0, 64, 7):
        byte = _byte(source)
        found |= <uint64_t>(byte & 0x7F) << shift
        if not byte & 0x80:
            return found
    raise ThriftError


cdef inline int64_t _integer(Bytes* source) except? 0:
    cdef uint64_t found = _varint(source)
    return <int64_t>(found >> 1) ^ -<int64_t>(found & 1)


cdef inline int _pass(Bytes* source, uint64_t size) except -1:
    if size > <uint64_t>(source.size - source.at):
        raise ThriftError
    source.at += <int64_t>size
    return 0


cdef inline uint64_t _fixed(int kind) except 0:
    """The size of values that all have one."""
    if kind == _I8:
        return 1
    if kind == _DOUBLE:
        return 8
    if kind == _UUID:
        return 16
    raise ThriftError


cdef object _cut(object data, Bytes* source, uint64_t size):
    cdef int64_t start = source.at
    _pass(source, size)
    return data[start : source.at]


cdef uint64_t _count(Bytes* source, int size) except? 0:
    """The size of a list or a map. Each element has a byte, so that none has more of them than bytes are left."""
    cdef uint64_t count = _varint(source) if size == _LONG_LIST else <uint64_t>size
    if count > <uint64_t>(source.size - source.at):
        raise ThriftError
    return count


cdef int _skip_element(Bytes* source, int kind, int depth) except -1:
    if kind == _BOOL or kind == _FALSE:
        return _pass(source, 1)
    return _skip(source, kind, depth)


cdef int _skip_list(Bytes* source, int depth) except -1:
    cdef int head
    cdef uint64_t each, count
    if depth > _DEEPEST:
        raise ThriftError
    head = _byte(source)
    count = _count(source, head >> 4)
    for each in range(count):
        _skip_element(source, head & 15, depth)
    return 0


cdef int _skip_map(Bytes* source, int depth) except -1:
    cdef uint64_t each, count
    cdef int kinds
    if depth > _DEEPEST:
        raise ThriftError
    count = _count(source, _LONG_LIST)
    if count:
        kinds = _byte(source)
        for each in range(count):
            _skip_element(source, kinds >> 4, depth)
            _skip_element(source, kinds & 15, depth)
    return 0


cdef int _skip_struct(Bytes* source, int depth) except -1:
    cdef int step, kind
    if depth > _DEEPEST:
        raise ThriftError
    while True:
        step = _byte(source)
        kind = step & 15
        if kind == _STOP:
            return 0
        if not step >> 4:
            _varint(source)
        if kind != _BOOL and kind != _FALSE:
            _skip(source, kind, depth)


cdef int _skip(Bytes* source, int kind, int depth) except -1:
    """Step over a value, with all checks of its reading."""
    if kind == _I16 or kind == _I32 or kind == _I64:
        _varint(source)
        return 0
    if kind == _BINARY:
        return _pass(source, _varint(source))
    if kind == _LIST or kind == _SET:
        return _skip_list(source, depth + 1)
    if kind == _STRUCT:
        return _skip_struct(source, depth + 1)
    if kind == _MAP:
        return _skip_map(source, depth + 1)
    return _pass(source, _fixed(kind))


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


cdef tuple _list(object data, Bytes* source, int depth):
    cdef int head, kind
    cdef uint64_t each, count
    cdef list found = []
    cdef Structs structs
    if depth > _DEEPEST:
        raise ThriftError
    head = _byte(source)
    kind = head & 15
    count = _count(source, head >> 4)
    if kind == _STRUCT:
        for each in range(count):
            found.append(source.at)
            _skip_struct(source, depth + 1)
        structs = Structs.__new__(Structs)
        structs._data, structs._starts, structs._depth = data, found, depth + 1
        return kind, structs
    for each in range(count):
        found.append(_element(data, source, kind, depth))
    return kind, found


cdef object _element(object data, Bytes* source, int kind, int depth):
    if kind == _BOOL or kind == _FALSE:
        return _byte(source) == _BOOL
    return _value(data, source, kind, depth)


cdef object _value(object data, Bytes* source, int kind, int depth):
    if kind == _I16 or kind == _I32 or kind == _I64:
        return _integer(source)
    if kind == _BINARY:
        return _cut(data, source, _varint(source))
    if kind == _LIST or kind == _SET:
        return _list(data, source, depth + 1)
    if kind == _STRUCT:
        return _struct(data, source, depth + 1)
    if kind == _MAP:  # Parquet has none
        _skip_map(source, depth + 1)
        return None
    return _cut(data, source, _fixed(kind))


cdef inline object _field(int identifier, int kind):
    return _FIELDS[identifier * _KINDS + kind] if 0 <= identifier < _USUAL else (identifier, kind)


cdef dict _struct(object data, Bytes* source, int depth):
    cdef dict fields = {}
    cdef int step, kind
    cdef int16_t identifier = 0     # as Thrift's own readers have it
    if depth > _DEEPEST:
        raise ThriftError
    while True:
        step = _byte(source)
        kind = step & 15
        if kind == _STOP:
            return fields
        if step >> 4:
            identifier = <int16_t>(identifier + (step >> 4))
        else:
            identifier = <int16_t>_integer(source)
        if kind == _BOOL or kind == _FALSE:
            fields[_field(identifier, _BOOL)] = kind == _BOOL
        else:
            fields[_field(identifier, kind)] = _value(data, source, kind, depth)


cdef tuple _read(object data, Py_ssize_t at, int depth):
    cdef Py_buffer view
    cdef Bytes source
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        source.data, source.size, source.at = <const uint8_t*>view.buf, view.len, at
        return _struct(data, &source, depth), source.at
    finally:
        PyBuffer_Release(&view)


def read_struct(data, Py_ssize_t at=0):
    """Read the struct that begins at `at`. Return its fields, and where it ends. Raises ThriftError."""
    if at < 0:
        raise ThriftError
    return _read(data, at, 0)
