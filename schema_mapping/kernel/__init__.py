"""What all kernels share: Arrow's C structs, buffers, and checks of bytes. Independent of formats."""
