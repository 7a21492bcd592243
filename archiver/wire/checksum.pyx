# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""CRC-32C without the interpreter's lock, by the processor's instruction if it has one, else by tables.

The instruction has a latency of three cycles. So three stretches of bytes are summed at the same time, and their sums
are joined: a table moves a sum over a stretch of zeros.
"""

from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    static int archiver_has_crc(void) { return __builtin_cpu_supports("sse4.2"); }
    __attribute__((target("sse4.2"))) static unsigned long long archiver_crc8(unsigned long long crc, unsigned long long word) {
        return __builtin_ia32_crc32di(crc, word);
    }
    __attribute__((target("sse4.2"))) static void archiver_crc3(
        unsigned long long *crcs, const unsigned char *data, long long size
    ) {
        unsigned long long a = crcs[0], b = crcs[1], c = crcs[2], word;
        const unsigned char *end = data + size;
        for (; data < end; data += 8) {
            memcpy(&word, data, 8);
            a = __builtin_ia32_crc32di(a, word);
            memcpy(&word, data + size, 8);
            b = __builtin_ia32_crc32di(b, word);
            memcpy(&word, data + 2 * size, 8);
            c = __builtin_ia32_crc32di(c, word);
        }
        crcs[0] = a; crcs[1] = b; crcs[2] = c;
    }
    #else
    static int archiver_has_crc(void) { return 0; }
    static unsigned long long archiver_crc8(unsigned long long crc, unsigned long long word) { return crc ^ word; }
    static void archiver_crc3(unsigned long long *crcs, const unsigned char *data, long long size) { (void)crcs; (void)data; (void)size; }
    #endif
    """
    int has_crc "archiver_has_crc"() noexcept nogil
    unsigned long long crc8 "archiver_crc8"(unsigned long long crc, unsigned long long word) noexcept nogil
    void crc3 "archiver_crc3"(unsigned long long* crcs, const uint8_t* data, int64_t size) noexcept nogil

cdef enum:
    STRETCH = 1024      # bytes of each of the three

cdef uint32_t POLYNOMIAL = 0x82F63B78
cdef uint32_t BYTES[8][256]     # a byte's part in the sum, with so many bytes after it
cdef uint32_t OVER[4][256]      # a byte of a sum, moved over a stretch of zeros
cdef bint by_instruction = has_crc()


cdef void fill_tables() noexcept:
    cdef uint32_t crc, moved
    cdef int byte, i, bit
    cdef uint32_t basis[32]
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
        BYTES[0][byte] = crc
    for byte in range(256):
        for i in range(1, 8):
            BYTES[i][byte] = (BYTES[i - 1][byte] >> 8) ^ BYTES[0][BYTES[i - 1][byte] & 0xFF]
    for bit in range(32):
        moved = <uint32_t>1 << bit
        for _ in range(STRETCH):
            moved = (moved >> 8) ^ BYTES[0][moved & 0xFF]
        basis[bit] = moved
    for i in range(4):
        for byte in range(256):
            moved = 0
            for bit in range(8):
                if byte >> bit & 1:
                    moved ^= basis[8 * i + bit]
            OVER[i][byte] = moved


fill_tables()


cdef inline uint32_t over_stretch(uint32_t crc) noexcept nogil:
    return OVER[0][crc & 0xFF] ^ OVER[1][crc >> 8 & 0xFF] ^ OVER[2][crc >> 16 & 0xFF] ^ OVER[3][crc >> 24]


cdef inline uint32_t tail(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(size):
        crc = (crc >> 8) ^ BYTES[0][(crc ^ data[i]) & 0xFF]
    return crc


cdef uint32_t instructed(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    cdef unsigned long long crcs[3]
    cdef unsigned long long word
    while size >= 3 * STRETCH:
        crcs[0] = crc
        crcs[1] = 0
        crcs[2] = 0
        crc3(crcs, data, STRETCH)
        crc = over_stretch(over_stretch(<uint32_t>crcs[0]) ^ <uint32_t>crcs[1]) ^ <uint32_t>crcs[2]
        data += 3 * STRETCH
        size -= 3 * STRETCH
    while size >= 8:
        memcpy(&word, data, 8)
        crc = <uint32_t>crc8(crc, word)
        data += 8
        size -= 8
    return tail(crc, data, size)


cdef uint32_t tabled(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    # The machine is little-endian.
    cdef uint32_t low, high
    while size >= 8:
        memcpy(&low, data, 4)
        memcpy(&high, data + 4, 4)
        low ^= crc
        crc = (
            BYTES[7][low & 0xFF] ^ BYTES[6][low >> 8 & 0xFF] ^ BYTES[5][low >> 16 & 0xFF] ^ BYTES[4][low >> 24]
            ^ BYTES[3][high & 0xFF] ^ BYTES[2][high >> 8 & 0xFF] ^ BYTES[1][high >> 16 & 0xFF] ^ BYTES[0][high >> 24]
        )
        data += 8
        size -= 8
    return tail(crc, data, size)


cdef uint32_t crc32c(const uint8_t* data, int64_t size) noexcept nogil:
    if by_instruction:
        return ~instructed(<uint32_t>0xFFFFFFFF, data, size)
    return ~tabled(<uint32_t>0xFFFFFFFF, data, size)


HARDWARE = bool(by_instruction)


def checksum(const uint8_t[::1] data not None, *, bint hardware=HARDWARE):
    """The CRC-32C of the bytes. `hardware` needs a processor with the instruction; see `HARDWARE`."""
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    if hardware and by_instruction:
        return ~instructed(<uint32_t>0xFFFFFFFF, start, data.shape[0]) & <uint32_t>0xFFFFFFFF
    return ~tabled(<uint32_t>0xFFFFFFFF, start, data.shape[0]) & <uint32_t>0xFFFFFFFF
