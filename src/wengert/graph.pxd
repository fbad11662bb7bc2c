cimport cython
from wengert.ops cimport ieee
from wengert.node cimport Node, constant, is_many
from wengert.engine cimport Many, Value, _many, tape
cdef long long PLACE, CODE, HAND, WALK, LEFT
cdef int ADD, SUB, MUL, DIV, POW, NEG, RELU, EXP, LOG, TANH, DOT, SUM, MEAN, WHERE, REACHED, VARYING, TURNING
cdef double TINY, inf
cdef bytearray UNARY
cdef class Graph:
    cdef readonly tuple values, outputs
    cdef readonly object codes, starts, operands, constants
    cdef object _partials, _local
    cdef list _results
cdef Py_ssize_t _lay_out(tuple values, long long[::1] starts, list results) except -1
cdef Py_ssize_t _write(tuple values, unsigned short[::1] codes, long long[::1] starts, long long[::1] operands, double[::1] constants) except -1
cdef object _copy_node(Value node, dict memo)
@cython.locals(i=Py_ssize_t)
cdef Many _copy_many(Value node, dict memo)
@cython.locals(i=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t)
cdef int _write_partials(tuple values, const long long[::1] starts, const long long[::1] operands, double[::1] partials, bint of_results) except -1
cpdef inline bint is_untaken(int code, double partial) noexcept
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t, term=double)
cdef int _pull_back(const unsigned short[::1] codes, const long long[::1] starts, const long long[::1] operands, const double[::1] partials, double[::1] sums, unsigned char[::1] reached, Py_ssize_t first, Py_ssize_t low, Py_ssize_t high, bint absolute) except -1
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t)
cdef int _push_forward(const unsigned short[::1] codes, const long long[::1] starts, const long long[::1] operands, const double[::1] partials, double[::1] sums, unsigned char[::1] reached) except -1
@cython.locals(at=Py_ssize_t, end=Py_ssize_t, i=Py_ssize_t, place=Py_ssize_t, used=Py_ssize_t, column=Py_ssize_t, half=Py_ssize_t, partner=Py_ssize_t, code=int, lost=bint, x=double, weight=double, inverse=double, slope=double, exponent=double)
cdef list _write_terms(tuple values, const unsigned short[::1] codes, const long long[::1] starts, const long long[::1] operands, unsigned char[::1] active, rule, long long[::1] terms, long long[::1] columns, double[::1] weights)
cdef inline bint _is_tiny(double x) noexcept
@cython.locals(at=Py_ssize_t, k=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t, g=double, slope=double, state=int, varies=bint, dropped=bint)
cdef int _pull_back_twice(const unsigned short[::1] codes, const long long[::1] starts, const long long[::1] operands, const double[::1] partials, const double[::1] moved, const unsigned char[::1] moving, const long long[::1] terms, const long long[::1] columns, const double[::1] weights, double[::1] sums, double[::1] turned, unsigned char[::1] reached, Py_ssize_t first, Py_ssize_t root) except -1
