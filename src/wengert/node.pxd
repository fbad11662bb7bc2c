cimport cython
from wengert.ops cimport ieee
cdef object _tracing_hook
cdef dict _supplied
cdef list _labels
cdef dict _places
@cython.no_gc
cdef class Node:
    cdef readonly long long _made  # first: ieee.sort reads it right behind the object's head
    cdef readonly double _data
    cdef double _grad
    cdef readonly Node _a, _b
    cdef readonly double _da, _db
    cdef readonly long long _mark
cpdef bint is_many(Node node) noexcept
cpdef double constant(Node node)
cpdef object refuse(str why)
cdef double _real(x) except? -1.0
cpdef double root_slope(x, double slope, bint is_root) except? -1.0
@cython.locals(i=Py_ssize_t)
cpdef list settle(list arguments)
