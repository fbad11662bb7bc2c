cimport cython
from wengert.ops cimport ieee
from wengert.node cimport Node, constant
from wengert.engine cimport Value, Many, tape
cdef long long PLACE, CODE, HAND, WALK, LEFT
cdef bytearray UNARY
cdef class Graph:
    cdef readonly tuple values, outputs
    cdef readonly object codes, starts, operands, constants
    cdef object _partials, _local
    cdef list _results
cdef Py_ssize_t _lay_out(tuple values, long long[::1] starts, list results) except -1
cdef Py_ssize_t _write(tuple values, unsigned short[::1] codes, long long[::1] starts, long long[::1] operands, double[::1] constants) except -1
cdef object _copy_node(Value node, dict memo)
@cython.locals(i=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t)
cdef int _write_partials(tuple values, const long long[::1] starts, const long long[::1] operands, double[::1] partials, bint of_results) except -1
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t)
cdef int _pull_back(const long long[::1] starts, const long long[::1] operands, const double[::1] partials, double[::1] sums, unsigned char[::1] reached, Py_ssize_t first, Py_ssize_t low, Py_ssize_t high) except -1
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t)
cdef int _push_forward(const long long[::1] starts, const long long[::1] operands, const double[::1] partials, double[::1] sums, unsigned char[::1] reached) except -1
