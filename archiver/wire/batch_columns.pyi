# Its function is for another kernel only, by cimport.
