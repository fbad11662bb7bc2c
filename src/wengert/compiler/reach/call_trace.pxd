cimport cython
from wengert.compiler.code cimport profiler

cdef int CALL, RETURN, C_CALL, C_EXCEPTION
cdef dict OF_STANDINS, OF_PROXIES
cdef set TRACING
cdef frozenset PLAIN

cdef class Code:
    cdef public object code, names
    cdef public bint is_known, is_followed, is_apart, is_tracing, is_told

cdef class CallTrace:
    cdef public list steps
    cdef public bint rests, has_switched
    cdef public set cached
    cdef public object proxies, watcher
    cdef dict _codes
    cdef set _pure
    cdef object _inside, _caller, _called, _value, _tracer

@cython.locals(self=CallTrace, seen=Code)
cdef int handle(object trace, object frame, int what, object arg) except -1
