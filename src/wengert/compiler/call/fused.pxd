cimport cython
from wengert.compiler.call cimport memory
from wengert.ops cimport ieee
from wengert.node cimport is_many
from wengert.engine cimport CODE, Many, Value, _many
cdef int COMPILED, HAND
cdef long long WALK
@cython.locals(i=Py_ssize_t, value=ieee.Item)
cpdef object gather(tuple values, double[::1] numbers)
@cython.locals(i=Py_ssize_t, value=ieee.Item)
cpdef object scatter(tuple values, double[::1] numbers, double[::1] gradients)
cpdef object fused(double data, tuple operands, double[::1] partials, bint leaves=*)
@cython.locals(i=Py_ssize_t, place=Py_ssize_t, x=double, y=double, away=double, scales="double[::1]")
cpdef bint are_near(list got, double[::1] want, tuple places, double agree, object sizes, double nudge) except -1
cdef class SavedCall:
    cdef object spec, numbers
    cdef list inputs, cotangents, walks
    cdef Py_ssize_t count
    cdef long long last
    cpdef object pull_back(self, object cotangents)
    @cython.locals(walk="long long", place=Py_ssize_t)
    cdef object receive(self, Value result, tuple operands)
    @cython.locals(walk="long long", place=Py_ssize_t)
    cdef object pull(self, Many call)
    @cython.locals(i=Py_ssize_t, operand=ieee.Item)
    cdef object pass_on(self, tuple operands, double[::1] gradients)
@cython.no_gc
cdef class CallNode(Many):
    cdef SavedCall _saved(self)
@cython.locals(place=Py_ssize_t, results=list, number=double)
cpdef list results_of(SavedCall saved, long long numbers, const unsigned char[::1] are_values, tuple operands, bint leaves)
