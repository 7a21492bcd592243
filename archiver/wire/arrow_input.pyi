# Its functions are for the other kernels only, by cimport.
