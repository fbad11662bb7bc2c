cimport cython
from wengert.ops cimport ieee
from wengert.engine cimport Value
cdef long long CODE
cdef Py_ssize_t PARTS, _room
cpdef list find(object root, type module)
cpdef object reset(object root, type module)
@cython.locals(items=list, i=Py_ssize_t, is_module=bint, waiting=list, seen=dict)
cdef object _walk(object root, type module, list found, list starts)
cdef list _items(object container, bint is_module)
@cython.locals(p=ieee.Item)
cdef Py_ssize_t _add(list items, Py_ssize_t i, list found, list starts) except -1
@cython.locals(p=ieee.Item)
cdef Py_ssize_t _reset(list items, Py_ssize_t i) except -1
@cython.locals(start=Py_ssize_t, before=ieee.Item, p=ieee.Item)
cdef bint _in_order(list found, list starts) except -1
cdef list _distinct(list found, list starts)
