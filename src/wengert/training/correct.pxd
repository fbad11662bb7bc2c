cimport cython
from wengert.compiler.call cimport memory
cdef class Correct:
    cpdef double count_at(self, long long predictions, Py_ssize_t width, long long targets, Py_ssize_t count) except? -1.0
cdef class Greatest(Correct):
    @cython.locals(correct=Py_ssize_t, place=Py_ssize_t, n=Py_ssize_t, k=Py_ssize_t, greatest=double, x=double)
    cpdef double count_at(self, long long predictions, Py_ssize_t width, long long targets, Py_ssize_t count) except? -1.0
cdef class SameSide(Correct):
    cdef readonly double threshold, target_threshold
    @cython.locals(same="long long")
    cpdef double count_at(self, long long predictions, Py_ssize_t width, long long targets, Py_ssize_t count) except? -1.0
