# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the grammar of RFC 8259: texts, and values that are kept as they are."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memchr

from schema_mapping.json.kernel.numbers cimport NumberText, read_number_text
from schema_mapping.json.kernel.reading cimport (
    BAD_JSON, BAD_UTF8, ESCAPE_ASCII, ESCAPE_DELETE, ESCAPE_EQUALS, ESCAPE_HTML, ESCAPE_LINES, ESCAPE_LONG,
    ESCAPE_NEXT, ESCAPE_PAIRS, ESCAPE_QUOTES, ESCAPE_SINGLE, ESCAPE_SLASH, ESCAPE_UPPER, MAX_DEPTH, STOPPED, TOO_DEEP, TRUNCATED, Reading, fail, fail_at, skip_space,
)
from schema_mapping.json.kernel.spans cimport special_marks
from schema_mapping.kernel.octets cimport load64, utf8_step

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef enum:
    SURROGATES = 0xD800
    LOW_SURROGATES = 0xDC00
    AFTER_SURROGATES = 0xE000

cdef const uint8_t* scan_text(Reading* r, const uint8_t* p, bint* has_escapes) noexcept nogil:
    # Returns the place of the closing quote of a text that begins at p, after its quote.
    cdef const uint8_t* end = r.end
    cdef uint64_t marks
    cdef int step
    cdef uint8_t octet
    has_escapes[0] = False
    while True:
        while end - p >= 8:
            marks = special_marks(load64(p))
            if marks:
                p += __builtin_ctzll(marks) >> 3
                break
            p += 8
        if p >= end:
            return fail(r, TRUNCATED, p)
        octet = p[0]
        if octet == 0x22:
            return p
        if octet < 0x20:
            return fail(r, BAD_JSON, p)
        if octet >= 0x80:
            step = utf8_step(p, end)
            if step < 0:
                return fail(r, BAD_UTF8, p)
            p += step
        elif octet == 0x5C:
            has_escapes[0] = True
            p = skip_escape(r, p)
            if p == NULL:
                return NULL
        else:
            p += 1


cdef inline int hexadecimal(uint8_t letter) noexcept nogil:
    if 48 <= letter <= 57:
        return letter - 48
    if 97 <= letter <= 102:
        return letter - 87
    return letter - 55 if 65 <= letter <= 70 else -1


cdef const uint8_t* skip_escape(Reading* r, const uint8_t* p) noexcept nogil:
    cdef int i
    if p + 1 >= r.end:
        return fail(r, TRUNCATED, p + 1)
    if p[1] == b"u":
        for i in range(2, 6):
            if p + i >= r.end:
                return fail(r, TRUNCATED, p + i)
            if hexadecimal(p[i]) < 0:
                return fail(r, BAD_JSON, p + i)
        return p + 6
    if memchr(b'"\\/bfnrt', p[1], 8) == NULL:
        return fail(r, BAD_JSON, p + 1)
    return p + 2


cdef int code_unit(Reading* r, const uint8_t* p) noexcept nogil:
    # The four digits of an escape, which are checked already.
    cdef int value = 0
    cdef int i
    for i in range(4):
        if 65 <= p[i] < 97:
            r.seen.escapes |= ESCAPE_UPPER
        value = value << 4 | hexadecimal(p[i])
    return value


cdef inline void note_escape(Reading* r, uint32_t code) noexcept nogil:
    # Notes which writers escape a character with its number.
    if code >= 0x10000:
        r.seen.escapes |= ESCAPE_PAIRS
    elif code == 0x2028 or code == 0x2029:
        r.seen.escapes |= ESCAPE_LINES
    elif code >= 0x80:
        r.seen.escapes |= ESCAPE_NEXT if code == 0x85 else ESCAPE_ASCII
    elif code == 0x3C or code == 0x3E or code == 0x26:
        r.seen.escapes |= ESCAPE_HTML
    elif code == 0x22 or code == 0x2B or code == 0x60:
        r.seen.escapes |= ESCAPE_QUOTES
    elif code == 0x27:
        r.seen.escapes |= ESCAPE_SINGLE
    elif code == 0x3D:
        r.seen.escapes |= ESCAPE_EQUALS
    elif code == 8 or code == 12:
        r.seen.escapes |= ESCAPE_LONG
    elif code == 0x7F:
        r.seen.escapes |= ESCAPE_DELETE
    elif code >= 0x20 or code == 9 or code == 10 or code == 13:
        r.loose = True


cdef int put_character(uint8_t* out, uint32_t code) noexcept nogil:
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0], out[1] = <uint8_t>(0xC0 | code >> 6), <uint8_t>(0x80 | code & 0x3F)
        return 2
    if code < 0x10000:
        out[0], out[1] = <uint8_t>(0xE0 | code >> 12), <uint8_t>(0x80 | code >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | code & 0x3F)
        return 3
    out[0], out[1] = <uint8_t>(0xF0 | code >> 18), <uint8_t>(0x80 | code >> 12 & 0x3F)
    out[2], out[3] = <uint8_t>(0x80 | code >> 6 & 0x3F), <uint8_t>(0x80 | code & 0x3F)
    return 4


cdef bint unescape(Reading* r, const uint8_t* p, const uint8_t* end, int64_t* size) noexcept nogil:
    # Writes a text without escapes to `mended`. Half a pair becomes U+FFFD. Returns False if memory is out.
    cdef uint8_t* out
    cdef uint32_t code, low
    if r.mended_size < end - p:
        out = <uint8_t*>realloc(r.mended, 2 * (end - p))
        if out == NULL:
            return False
        r.mended, r.mended_size = out, 2 * (end - p)
    out = r.mended
    while p < end:
        if p[0] != 0x5C:
            out[0] = p[0]
            out += 1
            p += 1
            continue
        if p[1] != b"u":
            if p[1] == b"/":
                r.seen.escapes |= ESCAPE_SLASH
            out[0] = short_escape(p[1])
            out += 1
            p += 2
            continue
        code = code_unit(r, p + 2)
        p += 6
        if SURROGATES <= code < LOW_SURROGATES and end - p >= 6 and p[0] == 0x5C and p[1] == b"u":
            low = code_unit(r, p + 2)
            if LOW_SURROGATES <= low < AFTER_SURROGATES:
                code = 0x10000 + ((code - SURROGATES) << 10) + low - LOW_SURROGATES
                p += 6
        note_escape(r, code)
        if SURROGATES <= code < AFTER_SURROGATES:
            r.loose = True
            code = 0xFFFD
        out += put_character(out, code)
    size[0] = out - r.mended
    return True


cdef inline uint8_t short_escape(uint8_t letter) noexcept nogil:
    if letter == b"b":
        return 8
    if letter == b"f":
        return 12
    if letter == b"n":
        return 10
    if letter == b"r":
        return 13
    return 9 if letter == b"t" else letter


cdef const uint8_t* skip_literal(Reading* r, const uint8_t* p) noexcept nogil:
    cdef const char* text
    cdef int size = 4
    cdef int i
    if p[0] == b"t":
        text = b"true"
    elif p[0] == b"f":
        text, size = b"false", 5
    else:
        text = b"null"
    for i in range(size):
        if p + i >= r.end or p[i] != <uint8_t>text[i]:
            return fail_at(r, p + i)
    return p + size


cdef const uint8_t* skip_name(Reading* r, const uint8_t* p) noexcept nogil:
    # Skips a member's name and colon, and the space around them.
    cdef bint has_escapes
    p = skip_space(p, r.end)
    if p >= r.end or p[0] != 0x22:
        return fail_at(r, p)
    p = scan_text(r, p + 1, &has_escapes)
    if p == NULL:
        return NULL
    p = skip_space(p + 1, r.end)
    return fail_at(r, p) if p >= r.end or p[0] != 0x3A else p + 1


cdef const uint8_t* skip_scalar(Reading* r, const uint8_t* p) noexcept nogil:
    cdef NumberText number
    cdef const uint8_t* after
    cdef bint has_escapes
    if p[0] == 0x22:
        p = scan_text(r, p + 1, &has_escapes)
        return NULL if p == NULL else p + 1
    if p[0] == b"t" or p[0] == b"f" or p[0] == b"n":
        return skip_literal(r, p)
    after = read_number_text(p, r.end, &number)
    return fail_at(r, number.end) if after == NULL else after


cdef const uint8_t* skip_value(Reading* r, const uint8_t* p, int depth) noexcept nogil:
    # Returns the end of the value that begins at or after p.
    cdef uint8_t closing[MAX_DEPTH]
    cdef int level = 0
    while True:
        p = skip_space(p, r.end)
        if p >= r.end:
            return fail(r, TRUNCATED, p)
        if p[0] == 0x7B or p[0] == 0x5B:
            if depth + level >= MAX_DEPTH:
                return fail(r, TOO_DEEP, p)
            closing[level] = p[0] + 2
            level += 1
            p = skip_space(p + 1, r.end)
            if p < r.end and p[0] == closing[level - 1]:
                p += 1
                level -= 1
            elif closing[level - 1] == 0x7D:
                p = skip_name(r, p)
                if p == NULL:
                    return NULL
                continue
            else:
                continue
        else:
            p = skip_scalar(r, p)
            if p == NULL:
                return NULL
        while level:
            p = skip_space(p, r.end)
            if p >= r.end:
                return fail(r, TRUNCATED, p)
            if p[0] == 0x2C:
                p += 1
                if closing[level - 1] == 0x7D:
                    p = skip_name(r, p)
                    if p == NULL:
                        return NULL
                break
            if p[0] != closing[level - 1]:
                return fail(r, BAD_JSON, p)
            p += 1
            level -= 1
        if level == 0:
            return p
