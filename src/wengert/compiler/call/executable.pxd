cimport cython
from wengert.compiler.call cimport memory
from wengert.compiler.call.fused cimport SavedCall, results_of
from wengert.compiler.call.captures cimport Captures
from wengert.engine cimport Many, Value, _many
from wengert.ops cimport ieee
cdef int COMPILED, UNSEEN, READY, STALE
cdef class Executable:
    cdef bint is_number, leaves, is_scalar, needs_leaves, needs_numbers, gives_rows, chooses
    cdef object build
    cdef public object uncompiled
    cdef const unsigned char[::1] computed
    cdef object kernel, shape, kind, dtype, numpy, left, right
    cdef tuple parameters
    cdef readonly tuple operands
    cdef long long[::1] places, widths, offsets, bounds, from_end, hows, lefts, rights, outcomes
    cdef long long left_at, right_at, row, width
    cdef readonly long long forward_backward_code, forward_code
    cdef public long long limit, min_examples, checked
    cdef readonly long long strip, python_strip
    cdef long long unlocked_from, pause
    cdef list cells, batched, outputs, pool
    cdef Py_ssize_t arity, guard_count
    cdef Captures captures
    cpdef Workspace acquire(self)
    @cython.locals(ran=bint, own=Py_ssize_t, count=Py_ssize_t, n=Py_ssize_t, at="long long")
    cpdef object pull_back(self, list arrays, object params, object cotangents)
@cython.final
cdef class Workspace:
    cdef readonly Executable spec
    cdef readonly object params, grads, input_grads
    cdef readonly bint is_bounded
    cdef readonly str error
    cdef bint is_copied, by_python
    cdef int state
    cdef double total
    cdef double[::1] x, g, reals, cotangents
    cdef long long[::1] ints, inputs, targets
    cdef long long input_grads_at, params_at, grads_at, reals_at, ints_at, inputs_at, targets_at, rows_at, work, sides_at, sides_step, sums_at
    cdef readonly Py_ssize_t runs
    cdef Py_ssize_t finite
    cdef Py_ssize_t input_grads_count, count, room, row_room, strip
    cdef list keepalive, reused, validated, memory
    cdef long long[::1] reused_at
    cdef readonly object buffers
    cdef object results, rows, sums
    cpdef object release(self)
    cpdef str stale_capture(self)
    cpdef str load(self)
    @cython.locals(spec=Executable, n=Py_ssize_t, is_unlocked=bint)
    cpdef bint run(self, list arrays, Py_ssize_t count, bint with_grads, double seed) except -1
    @cython.locals(n=Py_ssize_t)
    cpdef object set_cotangents(self, object cotangents)
    @cython.locals(spec=Executable, n=Py_ssize_t, count=Py_ssize_t, at="long long", number=double)
    cdef object build_result(self, list arrays, list values, bint with_grads, bint has_swept)
    @cython.locals(spec=Executable, code="long long")
    cdef object run_code(self, long long inputs, Py_ssize_t count, bint with_grads, double seed)
    cdef object _reserve(self, Py_ssize_t count, bint with_rows)
    @cython.locals(spec=Executable, n=Py_ssize_t, start="long long")
    cdef object _make_room(self, Py_ssize_t count)
    @cython.locals(spec=Executable, extent="long long", number="long long")
    cdef bint _point(self, Py_ssize_t n, object x, Py_ssize_t count) except -1
    @cython.locals(spec=Executable, at="long long", target="long long", rows=Py_ssize_t, size=Py_ssize_t)
    cdef bint _point_array(self, Py_ssize_t n, object x, bint is_int, Py_ssize_t count) except -1
    @cython.locals(spec=Executable, n=Py_ssize_t, at="long long")
    cdef bint _point_again(self, list arrays, Py_ssize_t count) except -1
    @cython.locals(spec=Executable, n=Py_ssize_t, rows="long long", copied="long long")
    cdef object _copy_inputs(self, Py_ssize_t count)
    @cython.locals(spec=Executable, n=Py_ssize_t)
    cdef bint _run_by_python(self, list arrays, Py_ssize_t count, bint with_grads, double seed) except -1
    cpdef double added(self, Py_ssize_t count) except? -1.0
    cpdef object values(self, Py_ssize_t count)
    @cython.locals(n=Py_ssize_t, step="long long", at="long long", left="long long", right="long long", left_step="long long", right_step="long long", how="long long", outcome=bint)
    cpdef bint guards_pass(self, Py_ssize_t row, Py_ssize_t count) noexcept nogil
    @cython.locals(spec=Executable, n=Py_ssize_t, count=Py_ssize_t, at="long long", grad=double, squares=double)
    cdef object node(self, double value, list values, bint with_grads)
    @cython.locals(n=Py_ssize_t, grad=double, squares=double)
    cdef bint are_grads_finite(self) except -1
    @cython.locals(spec=Executable)
    cpdef object begin(self, Py_ssize_t count, Py_ssize_t strip, bint with_grads)
    cdef bint is_ready(self, object load) except -1
    @cython.locals(spec=Executable, unlocked=bint, results_at="long long", at_once=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, code="long long", others=list)
    cdef Py_ssize_t run_strips(self, list arrays, Py_ssize_t start, Py_ssize_t count, bint with_grads, double seed, object results) except -1
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t _strips_by_python(self, list arrays, Py_ssize_t start, Py_ssize_t count, bint with_grads, double seed, object results) except -1
    @cython.locals(left_at="long long", count=Py_ssize_t, n=Py_ssize_t)
    cdef Py_ssize_t _strips(self, Py_ssize_t at, Py_ssize_t end, long long code, double seed, long long results_at, bint unlocked) noexcept nogil
    cdef void add_grads(self) noexcept nogil
    cdef object end(self)
    @cython.locals(spec=Executable, rows=Py_ssize_t, free="long long", n=Py_ssize_t, extent="long long", size="long long", at="long long")
    cdef bint _point_rows(self, list arrays, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, bint with_copies) except -1
    @cython.locals(spec=Executable, n=Py_ssize_t, is_int=bint, others=list)
    cdef list _row_by_row(self, list arrays, Py_ssize_t count)
    @cython.locals(spec=Executable, n=Py_ssize_t, count=Py_ssize_t, at="long long", free="long long", source="long long", size="long long", extent="long long")
    cpdef bint run_rows(self, list arrays, object places, bint with_grads, double seed) except -1
    cdef Py_ssize_t _room_for(self, Py_ssize_t count) except -1
    @cython.locals(row=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, at="long long", others="long long")
    cdef Py_ssize_t split_matching(self, list arrays, object rows, object unmatched, object results) except -2
    @cython.locals(spec=Executable)
    cpdef object inside(self, list arrays, Py_ssize_t count)
