# cython: language_level=3
"""The distinct values of a column chunk, as its dictionary has them."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from archiver.storage.parquet.columns.dictionary cimport Dictionary
from archiver.storage.parquet.columns.form cimport AS_DECIMALS, AS_WORDS, BY_NUMBER, Form
from archiver.storage.parquet.columns.texts cimport Text

cdef enum:
    LONGEST = 256               # bytes of a text; columns with longer ones aren't listed


cdef inline tuple distinct_values(const Dictionary* dictionary, const Form* form, int64_t most):
    """Numbers, or bytes. None if there are more than `most`, and for other types."""
    cdef const Text* texts = <const Text*>dictionary.texts.data
    cdef const int64_t* words = <const int64_t*>dictionary.words.data
    cdef int64_t index
    if dictionary.count > most:
        return None
    if form.memory == AS_WORDS and form.order == BY_NUMBER:
        return tuple([words[index] for index in range(dictionary.count)])
    if form.memory <= AS_WORDS or form.memory == AS_DECIMALS:
        return None
    for index in range(dictionary.count):
        if texts[index].size > LONGEST:
            return None
    return tuple([
        PyBytes_FromStringAndSize(<const char*>texts[index].at, texts[index].size) for index in range(dictionary.count)
    ])
