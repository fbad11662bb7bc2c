from wengert cimport native
from wengert.engine cimport LEAVES, Value, Many, _many
cdef int COMPILED
cpdef object gather(tuple values, double[::1] numbers)
cpdef object fused(double data, tuple operands, double[::1] partials, bint leaves=*)
