# This kernel offers nothing to Python: other kernels cimport it.
