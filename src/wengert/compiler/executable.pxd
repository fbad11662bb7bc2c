cimport cython
from wengert.compiler cimport memory
from wengert.compiler.fused cimport gather
from wengert.compiler.captures cimport Captures
from wengert.engine cimport Many, Value, _many
from wengert.ops cimport ieee
cdef int COMPILED
cdef class Executable:
    cdef bint is_number
    cdef readonly bint is_bounded
    cdef object kernel, shape, kind, dtype
    cdef tuple parameters
    cdef bint leaves
    cdef tuple operands
    cdef bint is_own, is_one, is_given, is_copied
    cdef double[::1] slopes
    cdef long long[::1] places
    cdef double[::1] numbers, reals
    cdef readonly object by
    cdef long long[::1] widths, bounds, from_end, wholes, inputs, targets, hows, lefts, rights, outcomes
    cdef long long left_at, right_at, numbers_at, slopes_at, by_at, reals_at, wholes_at, inputs_at, targets_at, work, sides_at, sides_step
    cdef readonly long long both_code, forward_code
    cdef public long long limit, least, checked
    cdef list cells, batched
    cdef Py_ssize_t arity, by_count, count, room, row_room
    cdef Captures captures
    cdef tuple gathered
    cdef long long[::1] gathered_at
    cdef list kept, steady, outputs, memory, shapes
    cdef object numpy, results, rows, left, right
    @cython.locals(n=Py_ssize_t, value=Value)
    cpdef object load(self)
    @cython.locals(n=Py_ssize_t)
    cdef bint run_on(self, list arrays, Py_ssize_t count, bint slopes, double seed) except -1
    cdef object run_code(self, long long inputs, Py_ssize_t count, bint slopes, double seed)
    @cython.locals(start="long long")
    cdef object _make_room(self, Py_ssize_t count)
    cdef object _make_output(self, Py_ssize_t n)
    @cython.locals(extent="long long", number="long long")
    cdef bint _point(self, Py_ssize_t n, object x, Py_ssize_t count) except -1
    @cython.locals(at="long long", source="long long", target="long long", rows=Py_ssize_t, size=Py_ssize_t)
    cdef bint _point_array(self, Py_ssize_t n, object x, bint whole, Py_ssize_t count) except -1
    @cython.locals(n=Py_ssize_t, at="long long")
    cdef bint _point_again(self, list arrays, Py_ssize_t count) except -1
    @cython.locals(n=Py_ssize_t)
    cdef bint _computed_by_python(self, list arrays, Py_ssize_t count, bint slopes, double seed) except -1
    cdef double value(self) except? -1.0
    cpdef double total(self, Py_ssize_t count) except? -1.0
    cpdef object values(self, Py_ssize_t count)
    cdef bint holds(self, Py_ssize_t row) except -1
    cpdef bint hold(self, Py_ssize_t count) except -1
    @cython.locals(n=Py_ssize_t, at="long long", left="long long", right="long long", left_step="long long", right_step="long long")
    cdef bint _hold(self, Py_ssize_t row, Py_ssize_t count) except -1
    @cython.locals(total=double, n=Py_ssize_t)
    cdef bint is_finite(self) except -1
    @cython.locals(n=Py_ssize_t, count=Py_ssize_t)
    cdef object node(self, double value, list values)
    @cython.locals(n=Py_ssize_t, count=Py_ssize_t, at="long long", free="long long", source="long long", size="long long", extent="long long")
    cpdef bint run_rows(self, list arrays, object places, bint slopes, double seed) except -1
    cdef long long _room_for(self, Py_ssize_t count) except -1
    @cython.locals(row=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, at="long long", others="long long")
    cdef Py_ssize_t divide(self, list arrays, object rows, object waiting, object results) except -2
