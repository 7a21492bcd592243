# Its class is for other kernels only, by cimport.
