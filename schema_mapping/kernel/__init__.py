"""Shared by the kernels of all formats: Arrow's C structs (`arrow`), and memory for Arrow's buffers (`blocks`)."""
