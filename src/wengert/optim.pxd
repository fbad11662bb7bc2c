from wengert cimport native
from wengert.engine cimport Value
cdef object _zero(list parameters)
cdef object _scale(list parameters, double factor)
cdef object _sgd(list parameters, double[::1] velocity, double lr, double momentum, bint nesterov, double weight_decay)
cdef object _adam(list parameters, double[::1] age, double[::1] mean, double[::1] square, double lr, double beta1, double beta2, double eps, double weight_decay, bint decoupled)
