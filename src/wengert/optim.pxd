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
@cython.locals(i=Py_ssize_t, p=ieee.Item)
cdef object _sgd_loop(list parameters, double[::1] x, double[::1] g, double[::1] velocity, double lr, double momentum, bint nesterov, double weight_decay)
@cython.locals(i=Py_ssize_t, p=ieee.Item, corrected=double, rate=double, scale=double)
cdef object _adam_loop(list parameters, double[::1] x, double[::1] g, double[::1] age, double[::1] mean, double[::1] square, double lr, double beta1, double beta2, double eps, double weight_decay, bint decoupled)
