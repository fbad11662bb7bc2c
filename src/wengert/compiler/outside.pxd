cimport cython
from wengert.compiler cimport memory
from wengert.engine cimport Value
cdef class Contents:
    cdef object cell
cdef class Place:
    cdef object get, key, then, leaf, names
    cdef str name
    cdef object read(self)
cdef class Held:
    cdef list items, then
    cdef Py_ssize_t count
    cdef str name
cdef class Outside:
    cdef list places, held, lists
    cdef tuple by_value
    cpdef str changed(self)
    cdef bint _are_equal(self, object now, object then) except -1
    cdef str _changed_list(self)
@cython.locals(i=Py_ssize_t)
cdef bint _are_same(list x, list y) except -1
