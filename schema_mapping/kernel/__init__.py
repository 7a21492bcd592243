"""What the kernels of all formats share: Arrow's C structs (`arrow`), and memory for Arrow's buffers (`blocks`).

It is independent of formats. A format's loops belong to `kernel` in its package.
"""
