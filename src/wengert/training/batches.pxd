cimport cython
from wengert cimport optim
from wengert.compiler.call cimport executable, memory
from wengert.ops cimport ieee
from wengert.training cimport correct
cdef class Arrays:
    cdef tuple parameters
    cdef object numbers, gradients
    cdef double[::1] x, g
    cdef long long numbers_at, gradients_at
cdef class BatchRows:
    cdef list data, columns, gathered
    cdef object order
    cdef long long[::1] sources, targets, widths
    cdef long long targets_at, order_at
    cdef Py_ssize_t piece, count
    cdef bint is_inside
    @cython.locals(bound="long long", at="long long")
    cdef object _column(self, executable.Executable loss, Py_ssize_t n, object column)
    cdef int begin(self, object order) except -1
    @cython.locals(n=Py_ssize_t)
    cdef void gather(self, Py_ssize_t start, Py_ssize_t count) noexcept
cdef class Scores:
    cdef correct.Correct metric
    cdef tuple columns
    cdef object targets, predictions
    cdef long long targets_at, gathered_at, predictions_at
    cdef Py_ssize_t width, target_width, output
    cdef bint is_fast
    @cython.locals(at="long long")
    cdef double count(self, executable.Workspace space, object order, long long order_at, Py_ssize_t count) except? -1.0
cdef class Losses:
    cdef Arrays arrays
    cdef BatchRows rows
    cdef Scores scores
    cdef double loss, correct
    cdef bint is_stale(self) except -1
    cdef bint compute(self, Py_ssize_t start, Py_ssize_t count, double scale) except -1
cdef class OneLoss(Losses):
    cdef executable.Executable specialization
    cdef executable.Workspace space
    cdef object rest
    cdef list arguments
    cdef Py_ssize_t room
    cdef bint is_all
    cdef bint is_stale(self) except -1
    @cython.locals(loss=executable.Executable, space=executable.Workspace, rows=BatchRows, arrays=Arrays, scores=Scores)
    cdef bint compute(self, Py_ssize_t start, Py_ssize_t count, double scale) except -1
cdef class SeveralLosses(Losses):
    cdef list spaces
    cdef dict spots
    cdef bint is_stale(self) except -1
    @cython.locals(rows=BatchRows, arrays=Arrays, scores=Scores)
    cdef bint compute(self, Py_ssize_t start, Py_ssize_t count, double scale) except -1
    cpdef object load(self, object space)
cdef class Penalty:
    cdef executable.Workspace space
    cdef Arrays arrays
    cdef object places
    cdef long long places_at
    cdef double loss
    cdef bint is_in_place
    @cython.locals(space=executable.Workspace, arrays=Arrays, count=Py_ssize_t)
    cdef double add(self) except? -1.0
cdef class Batches:
    cdef BatchRows rows
    cdef Losses losses
    cdef Arrays arrays
    cdef readonly tuple parameters
    cdef readonly object numbers, gradients
    cdef Penalty penalty
    cdef object optimizer, sums
    cdef public double correct
    cdef Py_ssize_t size
    cdef double clip_norm
    cpdef object begin(self, object order, Py_ssize_t size, double clip_norm, object meanwhile)
    cpdef bint is_stale(self) except -1
    @cython.locals(arrays=Arrays, losses=Losses, start=Py_ssize_t, total=Py_ssize_t, done=Py_ssize_t, lr=double, loop=optim.UpdateLoop, end=Py_ssize_t)
    cpdef object run(self, Py_ssize_t number, Py_ssize_t steps, double loss, object state)
    @cython.locals(arrays=Arrays, losses=Losses, penalty=Penalty, at=Py_ssize_t, scale=double, piece=Py_ssize_t, is_cut=bint, count=Py_ssize_t, factor=double, squares=double)
    cdef bint compute(self, Py_ssize_t start, Py_ssize_t end) except -1
