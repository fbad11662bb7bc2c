cimport cython
from wengert.compiler.call cimport memory
from wengert.engine cimport Value
from wengert.ops cimport ieee
cdef int NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES, UNCHANGED, LENGTH, ROW_OF_FUNCTION, ROW_OF_CLASS, ROW_OF_COUNTER, ROW_OF_FLOAT, ROW_OF_VARIABLE
cdef object _missing
cdef tuple PLAIN
@cython.locals(names=dict)
cpdef object look(int kind, object source, object key)
cpdef bint same(object now, object then) except -1
cdef bint is_itself(object now, object then) except -1
cdef bint are_themselves(object now, object then) except -1
cdef object function_of(object x, object source)
@cython.final
cdef class Place:
    cdef readonly int kind
    cdef readonly object source, key, then, leaf
    cdef readonly str name
    cdef public Py_ssize_t number
    cdef bint has_dict_alone, is_weak, tells
    cdef bint is_stale(self, long long target) except -1
@cython.final
cdef class Items:
    cdef readonly object source
    cdef readonly list then, leaves, keys
    cdef public list numbers
    cdef readonly str name
    cdef bint tells
    @cython.locals(i=Py_ssize_t, count=Py_ssize_t, at=Py_ssize_t, number="long long")
    cdef Py_ssize_t changed(self, long long target) except -3
    @cython.locals(i=Py_ssize_t)
    cdef Py_ssize_t _difference(self, list now, list then) except -3
    cdef str what(self, Py_ssize_t at)
@cython.final
cdef class BulkNumbers:
    cdef readonly object source, places
    cdef readonly str name
    cdef tuple shape
    cdef long long places_at, count, first
    @cython.locals(at="long long")
    cdef bint read_into(self, long long target) except -1
@cython.final
cdef class PlaceGroup:
    cdef readonly object kind
    cdef readonly object counter
    cdef readonly list places
    cdef object seen
    cdef long long version
    @cython.locals(version="long long")
    cdef str stale(self)
@cython.final
cdef class Captures:
    cdef readonly list places, items, groups, numbers
    cdef object constants
    cdef list by_row, others, counted
    cdef object rows
    cdef long long rows_at
    cdef Py_ssize_t fixed
    cdef tuple values
    cdef long long[::1] values_at
    @cython.locals(at=Py_ssize_t, row=Py_ssize_t, count=Py_ssize_t, n=Py_ssize_t, value=ieee.Item)
    cpdef str load(self, long long target, bint with_values, Captures unchanged=*)
