cimport cython
from wengert.ops cimport ieee
from wengert.engine cimport Value
cdef inline (double, double) _sgd(double x, double g, double velocity, double lr, double momentum, bint nesterov, double weight_decay) noexcept
cdef inline (double, double, double) _adam(double x, double g, double mean, double square, double rate, double scale, double lr, double beta1, double beta2, double eps, double weight_decay, bint decoupled) noexcept
cdef (double, double) _corrections(double age, double lr, double beta1, double beta2) noexcept
@cython.locals(i=Py_ssize_t, p=ieee.Item)
cdef object _zero(list parameters)
@cython.locals(i=Py_ssize_t, p=ieee.Item)
cdef object _scale(list parameters, double factor)
cdef class UpdateLoop:
    cdef object move(self, list parameters, double[::1] x, double[::1] g, double lr)
cdef class _SGDLoop(UpdateLoop):
    cdef double[::1] velocity
    cdef double momentum, weight_decay
    cdef bint nesterov
    @cython.locals(i=Py_ssize_t, p=ieee.Item, velocity="double[::1]", momentum=double, decay=double, nesterov=bint)
    cdef object move(self, list parameters, double[::1] x, double[::1] g, double lr)
cdef class _AdamLoop(UpdateLoop):
    cdef double[::1] age, mean, square
    cdef double beta1, beta2, eps, weight_decay
    cdef bint decoupled
    @cython.locals(i=Py_ssize_t, p=ieee.Item, age="double[::1]", mean="double[::1]", square="double[::1]", b1=double, b2=double, eps=double, decay=double, apart=bint, corrected=double, rate=double, scale=double)
    cdef object move(self, list parameters, double[::1] x, double[::1] g, double lr)
