cimport cython
from wengert.ops cimport ieee
from wengert.node cimport Node, constant
from wengert.engine cimport Value, Many, tape
cdef long long PLACE, CODE, HAND, WALK, LEFT
cdef bytearray UNARY
cdef Py_ssize_t _lay_out(list values, long long[::1] starts) except -1
cdef Py_ssize_t _write(list values, unsigned short[::1] codes, long long[::1] starts, long long[::1] operands, double[::1] constants) except -1
cdef object _twin(Value node, dict memo)
@cython.locals(i=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t)
cdef int _write_partials(list values, long long[::1] starts, long long[::1] operands, double[::1] partials) except -1
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t)
cdef int _pull_back(long long[::1] starts, long long[::1] operands, double[::1] partials, double[::1] sums, unsigned char[::1] reached, Py_ssize_t first) except -1
@cython.locals(at=Py_ssize_t, x=Py_ssize_t, place=Py_ssize_t)
cdef int _push_forward(long long[::1] starts, long long[::1] operands, double[::1] partials, double[::1] sums, unsigned char[::1] reached) except -1
