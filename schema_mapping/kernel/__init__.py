"""What the kernels of all formats share: Arrow's C structs (`arrow`), and memory whose buffers Arrow may keep (`blocks`).

It knows no format of values. A format's own loops belong to `kernel` in its package.
"""
