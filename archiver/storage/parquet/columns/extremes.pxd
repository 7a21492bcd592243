# cython: language_level=3
"""The lowest and the highest of some values, in the order of their type (parquet.thrift, ColumnOrder).

They are bounds unless a value is NaN: engines put NaN in different places of the order, as parquet-java says none.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from archiver.storage.parquet.columns.form cimport (
    BYTE_ARRAY, BY_BYTES, BY_DECIMAL, BY_FLOAT, Form, decimal_at, decimal_bytes, wide_integer,
)
from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put
from archiver.storage.parquet.columns.short_bounds cimport put_above, start_of
from archiver.storage.parquet.columns.texts cimport Text, beginning, compared

cdef enum:
    LONGEST_BOUND = 4096    # bytes: longer extremes are cut


cdef struct Extremes:
    bint are_set
    bint has_nan
    int64_t low
    int64_t high
    double low_float
    double high_float
    wide_integer low_decimal
    wide_integer high_decimal
    Text low_text
    Text high_text
    uint64_t low_beginning
    uint64_t high_beginning


cdef inline void see_number(Extremes* extremes, int64_t number) noexcept nogil:
    if not extremes.are_set:
        extremes.low = extremes.high = number
        extremes.are_set = True
    elif number < extremes.low:
        extremes.low = number
    elif number > extremes.high:
        extremes.high = number


cdef inline void see_float(Extremes* extremes, double number) noexcept nogil:
    if number != number:
        extremes.has_nan = True
        return
    if not extremes.are_set:
        extremes.low_float = extremes.high_float = number
        extremes.are_set = True
    elif number < extremes.low_float:
        extremes.low_float = number
    elif number > extremes.high_float:
        extremes.high_float = number


cdef inline void see_decimal(Extremes* extremes, wide_integer number) noexcept nogil:
    if not extremes.are_set:
        extremes.low_decimal = extremes.high_decimal = number
        extremes.are_set = True
    elif number < extremes.low_decimal:
        extremes.low_decimal = number
    elif number > extremes.high_decimal:
        extremes.high_decimal = number


cdef inline void see_text(Extremes* extremes, Text text) noexcept nogil:
    """Most texts differ from both extremes in their first bytes."""
    cdef uint64_t word = beginning(text)
    if not extremes.are_set:
        extremes.low_text = extremes.high_text = text
        extremes.low_beginning = extremes.high_beginning = word
        extremes.are_set = True
        return
    if word <= extremes.low_beginning and compared(text, extremes.low_text) < 0:
        extremes.low_text, extremes.low_beginning = text, word
    if word >= extremes.high_beginning and compared(text, extremes.high_text) > 0:
        extremes.high_text, extremes.high_beginning = text, word


cdef inline void see_word(Extremes* extremes, const Form* form, uint64_t word) noexcept nogil:
    """See a number of a dictionary: its bits, in a word."""
    cdef double wide
    cdef float narrow
    if form.order != BY_FLOAT:
        see_number(extremes, <int64_t>word)
    elif form.width == 8:
        memcpy(&wide, &word, 8)
        see_float(extremes, wide)
    else:
        memcpy(&narrow, &word, 4)
        see_float(extremes, narrow)


cdef inline void see_numbers(Extremes* extremes, const int64_t* numbers, int64_t count) noexcept nogil:
    cdef int64_t low, high, index
    if not count:
        return
    low = high = numbers[0]
    for index in range(1, count):
        low = numbers[index] if numbers[index] < low else low
        high = numbers[index] if numbers[index] > high else high
    see_number(extremes, low)
    see_number(extremes, high)


cdef inline void see_view(Extremes* extremes, const Form* form, Text view) noexcept nogil:
    """See a text, or a value of so many bytes as Arrow has it."""
    if form.order == BY_DECIMAL:
        see_decimal(extremes, decimal_at(view.at))
    else:
        see_text(extremes, view)


cdef inline void merge(Extremes* extremes, const Form* form, const Extremes* others) noexcept nogil:
    """See the extremes of others."""
    extremes.has_nan |= others.has_nan
    if not others.are_set:
        return
    if form.order == BY_FLOAT:
        see_float(extremes, others.low_float)
        see_float(extremes, others.high_float)
    elif form.order == BY_DECIMAL:
        see_decimal(extremes, others.low_decimal)
        see_decimal(extremes, others.high_decimal)
    elif form.order == BY_BYTES:
        see_text(extremes, others.low_text)
        see_text(extremes, others.high_text)
    else:
        see_number(extremes, others.low)
        see_number(extremes, others.high)


cdef inline int order_of(const Form* form, const Extremes* one, const Extremes* other, bint is_high) noexcept nogil:
    """Below zero, zero or above it, as the one's extreme is less than the other's, equal or greater."""
    if form.order == BY_FLOAT:
        if is_high:
            return (one.high_float > other.high_float) - (one.high_float < other.high_float)
        return (one.low_float > other.low_float) - (one.low_float < other.low_float)
    if form.order == BY_DECIMAL:
        if is_high:
            return (one.high_decimal > other.high_decimal) - (one.high_decimal < other.high_decimal)
        return (one.low_decimal > other.low_decimal) - (one.low_decimal < other.low_decimal)
    if form.order == BY_BYTES:
        return compared(one.high_text, other.high_text) if is_high else compared(one.low_text, other.low_text)
    if is_high:
        return (one.high > other.high) - (one.high < other.high)
    return (one.low > other.low) - (one.low < other.low)


cdef inline void forget(Extremes* extremes) noexcept nogil:
    extremes.are_set = extremes.has_nan = False


cdef inline bint is_exact(const Form* form, const Extremes* extremes, bint is_high) noexcept nogil:
    """Whether an extreme is stored whole."""
    return form.order != BY_BYTES or (
        extremes.high_text.size if is_high else extremes.low_text.size
    ) <= LONGEST_BOUND


cdef inline int put_bound(Bytes* out, const Form* form, const Extremes* extremes, bint is_high) except -1 nogil:
    """Put a bound of all values. 0 if there is none: without values, with a NaN, or if it can't be cut."""
    if not extremes.are_set or extremes.has_nan:
        return 0
    if is_exact(form, extremes, is_high):
        _put_extreme(out, form, extremes, is_high)
        return 1
    if form.type != BYTE_ARRAY:     # of a fixed size, which a bound has as well
        return 0
    if is_high:
        return put_above(out, extremes.high_text)
    put(out, extremes.low_text.at, start_of(extremes.low_text))
    return 1


cdef inline int _put_extreme(Bytes* out, const Form* form, const Extremes* extremes, bint is_high) except -1 nogil:
    """An extreme as plain encoding has it, but texts without their size. A zero is -0.0 as the lowest, else 0.0."""
    cdef double wide = extremes.high_float if is_high else extremes.low_float
    cdef float narrow
    cdef int64_t number = extremes.high if is_high else extremes.low
    cdef Text text
    if form.order == BY_BYTES:
        text = extremes.high_text if is_high else extremes.low_text
        return put(out, text.at, text.size)
    if form.order == BY_DECIMAL:
        decimal_bytes(extremes.high_decimal if is_high else extremes.low_decimal, form.width, extend(out, form.width))
        return 0
    if form.order == BY_FLOAT:
        if wide == 0:
            wide = 0.0 if is_high else -0.0
        if form.width == 8:
            return put(out, &wide, 8)
        narrow = <float>wide
        return put(out, &narrow, 4)
    return put(out, &number, form.width)
