cimport cython
from wengert cimport optim
from wengert.compiler.call cimport executable, memory
from wengert.ops cimport ieee
cdef class Batches:
    cdef executable.Executable made
    cdef executable.Workspace space, penalty
    cdef list spaces, columns, rows, given
    cdef dict spots
    cdef object sums, rest, penalized
    cdef readonly tuple parameters
    cdef readonly object optimizer, data, numbers, gradients, predictions, order, metric
    cdef double[::1] x, g
    cdef long long[::1] goals
    cdef public double right
    cdef readonly bint counts
    cdef long long[::1] sources, targets, widths
    cdef long long penalized_at, targets_at, numbers_at, gradients_at, predictions_at, order_at
    cdef Py_ssize_t piece, room, shown, width, count
    cdef readonly Py_ssize_t size
    cdef bint is_single, is_all, is_inside, is_shown, has_cut
    cdef readonly bint is_penalty_in_place
    cdef double clip_norm, loss, found, cut, target_cut
    @cython.locals(penalty=executable.Workspace)
    cdef bint _share_numbers(self, executable.Executable made) except -1
    @cython.locals(bound="long long", at="long long")
    cdef object _column(self, executable.Executable made, Py_ssize_t n, object column)
    @cython.locals(done=Py_ssize_t, lr=double, loop=optim.UpdateLoop, end=Py_ssize_t)
    cpdef object run(self, Py_ssize_t start, Py_ssize_t steps, double loss, object state)
    cdef bint changed(self) except -1
    @cython.locals(cut=Py_ssize_t, scale=double, pieces=bint, count=Py_ssize_t, factor=double, squares=double, penalty=executable.Workspace)
    cdef bint compute(self, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(made=executable.Executable, space=executable.Workspace, n=Py_ssize_t, to="long long")
    cdef bint by_one(self, Py_ssize_t cut, Py_ssize_t count, double scale) except -1
    @cython.locals(at="long long", right=Py_ssize_t, n=Py_ssize_t, k=Py_ssize_t, goal=Py_ssize_t, x=double, y=double, is_nan=bint, wrong=bint)
    cdef Py_ssize_t classes(self, Py_ssize_t count) noexcept
    @cython.locals(predictions="long long", aims="long long")
    cdef Py_ssize_t sides(self, Py_ssize_t count) noexcept
    cdef bint by_several(self, Py_ssize_t cut, Py_ssize_t count, double scale) except -1
    cpdef object give_numbers(self, object space)
    @cython.locals(count=Py_ssize_t)
    cdef double penalize(self, executable.Workspace penalty) except? -1.0
