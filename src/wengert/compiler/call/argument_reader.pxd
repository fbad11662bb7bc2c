cimport cython
from wengert.engine cimport Value
cdef tuple BY_VALUE, KINDS
cdef class ArgumentReader:
    cdef int kind
    cdef object expected
    cdef Py_ssize_t place, size
    cdef tuple shape, held, keys
    cdef str dtype_kind
    cdef object dtype
    cdef list children
    cdef bint is_int, is_wide, takes_arrays, checks_identity, is_mixed
    cdef bint _resembles_list(self, object x) except -1
    cdef bint takes(self, object x) except -1
    cdef object widened(self, object x, object numpy)
    @cython.locals(n=Py_ssize_t, child=ArgumentReader)
    cdef bint resembles(self, object x, object numpy, bint batched) except -1
cpdef bint are_equal(object x, object y) except -1
@cython.locals(at=Py_ssize_t)
cpdef bint are_in_order(dict named, tuple keys) except -1
@cython.locals(n=Py_ssize_t)
cdef bint _are_keys(tuple given, tuple keys) except -1
