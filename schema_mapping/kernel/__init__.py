"""What the kernels of all formats share.

Arrow's C structs (`arrow`), memory for Arrow's buffers (`blocks`), and reading and checking bytes (`octets`). It is
independent of formats. A format's loops belong to `kernel` in its package.
"""
