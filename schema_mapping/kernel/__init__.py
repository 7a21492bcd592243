"""Shared by all kernels: Arrow's C structs, buffers, and checks of bytes."""
