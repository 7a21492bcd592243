"""What the kernels of all formats share: Arrow's C structs (`arrow`), and memory for Arrow's buffers (`blocks`).

It knows no format of values. A format's own loops belong to `kernel` in its package.
"""
