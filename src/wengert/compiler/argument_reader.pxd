cimport cython
from wengert.compiler cimport memory
from wengert.engine cimport Value
from wengert.ops cimport ieee
cdef tuple ALIKE, KINDS
cdef class ArgumentReader:
    cdef int kind
    cdef object want
    cdef Py_ssize_t place, size
    cdef tuple shape, held, keys
    cdef str of
    cdef list children
    cdef bint whole, takes_arrays, is_one, has_float
    cdef long long at
    cdef bint _resembles_list(self, object x) except -1
    cdef object widened(self, object x, object numpy)
    cdef long long fill_rows(self, object x, Py_ssize_t count) except -1
    @cython.locals(n=Py_ssize_t, child=ArgumentReader)
    cdef bint resembles(self, object x, object numpy, bint batched) except -1
    cdef long long fill(self, object x, Py_ssize_t axis, long long at) except -1
    @cython.locals(whole="long long")
    cdef long long fill_items(self, object x, long long at) except -1
cpdef bint are_equal(object x, object y) except -1
