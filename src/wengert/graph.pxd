from wengert cimport native
from wengert.node cimport Node
from wengert.engine cimport Value, Many, tape
cdef long long PLACE, CODE, WALK, LEFT
cdef bytearray UNARY
cdef Py_ssize_t _lay_out(list values, long long[::1] starts) except -1
cdef Py_ssize_t _write(list values, unsigned short[::1] codes, long long[::1] starts, long long[::1] operands, double[::1] constants) except -1
cdef object _copy_partials(list values, long long[::1] starts, long long[::1] operands, double[::1] partials)
cdef object _twin(Value node, dict memo)
