cimport cython
from wengert.compiler cimport memory
from wengert.engine cimport Value
cdef int NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES
cdef object _missing
cdef tuple PLAIN
@cython.locals(names=dict)
cpdef object look(int kind, object source, object key)
cpdef bint same(object now, object then) except -1
cdef class Place:
    cdef readonly int kind
    cdef readonly object source, key, then, leaf
    cdef readonly str name
    cdef bint has_dict_alone
    cdef bint is_stale(self) except -1
cdef class Items:
    cdef readonly object source
    cdef readonly list then, leaves, keys
    cdef readonly str name
    cdef str at
    @cython.locals(i=Py_ssize_t)
    cdef bint is_stale(self) except -1
    @cython.locals(i=Py_ssize_t)
    cdef bint _differ(self, list now, list then) except -1
    cdef bint _found(self, Py_ssize_t i) except -1
    cdef str what(self)
cdef class BulkNumbers:
    cdef readonly object source, places
    cdef readonly str name
    cdef tuple shape
    cdef long long places_at, count, first
    @cython.locals(at="long long")
    cdef bint read_into(self, long long target) except -1
cdef class PlaceGroup:
    cdef readonly object kind
    cdef readonly list counter, places
    cdef object seen
    cdef unsigned int version
    @cython.locals(version="unsigned int")
    cdef str stale(self)
cdef class Captures:
    cdef readonly list places, items, groups, numbers
    cpdef str stale(self, long long target)
