# Nothing for Python: other kernels cimport it.
