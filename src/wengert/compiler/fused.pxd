cimport cython
from wengert.ops cimport ieee
from wengert.engine cimport CODE, Value, Many, _many
cdef int COMPILED, HAND
@cython.locals(i=Py_ssize_t, value=ieee.Item)
cpdef object gather(tuple values, double[::1] numbers)
@cython.locals(i=Py_ssize_t, value=ieee.Item)
cpdef object scatter(tuple values, double[::1] numbers, double[::1] gradients)
cpdef object fused(double data, tuple operands, double[::1] partials, bint leaves=*)
