cimport cython
from wengert.ops cimport ieee
from wengert.engine cimport Value
@cython.locals(i=Py_ssize_t, p=ieee.Item)
cdef object _zero(list parameters)
@cython.locals(i=Py_ssize_t, p=ieee.Item)
cdef object _scale(list parameters, double factor)
@cython.locals(i=Py_ssize_t, p=ieee.Item, g=double, v=double)
cdef object _sgd(list parameters, double[::1] velocity, double lr, double momentum, bint nesterov, double weight_decay)
@cython.locals(i=Py_ssize_t, p=ieee.Item, corrected=double, rate=double, scale=double, x=double, g=double, m=double, s=double)
cdef object _adam(list parameters, double[::1] age, double[::1] mean, double[::1] square, double lr, double beta1, double beta2, double eps, double weight_decay, bint decoupled)
