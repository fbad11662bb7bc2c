cimport cython
from wengert.compiler cimport memory
from wengert.compiler.fused cimport gather
from wengert.compiler.plan cimport Plan
from wengert.compiler.slot cimport Slot
from wengert.engine cimport Many, Value, _many
from wengert.ops cimport ieee
cdef int COMPILED, FIXED, FLOAT, WHOLE, VALUE, NUMBERS, VALUES, ITEMS, KEYED, FEW, SIZES
cdef object MISSING
cdef list in_force, NONE
cdef tuple ALIKE
cdef class Served:
    cdef public list specializations
    cdef public long long calls, trusted
    cdef readonly bint was_finite
    cdef public bint pending
    cdef public object waiting, ran
    cdef list slots, arrays, memory, values, seen
    cdef tuple names
    cdef Py_ssize_t first, last, count
    cdef bint batched, is_split
    cdef object numpy, ndarray
    @cython.locals(size=int, following="long long")
    cdef bint is_served(self, Py_ssize_t count, bint slopes) except -1
    @cython.locals(n=Py_ssize_t, given=Py_ssize_t)
    cdef bint read(self, tuple args, dict named) except -1
    @cython.locals(n=Py_ssize_t)
    cdef bint _take(self, Slot slot, object x) except -1
    @cython.locals(end="long long")
    cdef bint _take_numbers(self, Slot slot, object x) except -1
    cdef bint _take_values(self, Slot slot, object x) except -1
    cdef bint _is_count(self, Py_ssize_t count) except -1
    @cython.locals(place=Py_ssize_t, slopes=bint, value=double)
    cdef object run_one(self, list arrays, list values, bint disabled)
    @cython.locals(place=Py_ssize_t, slopes=bint, scale=double, n=Py_ssize_t, value=double)
    cdef object run_batch(self, list arrays, Py_ssize_t count, str how, bint disabled)
    cdef object _each(self, object values)
    cdef object _combined(self, double value, object node, bint finite)
    @cython.locals(n=Py_ssize_t)
    cdef object _shares(self, list arrays, Py_ssize_t count, bint slopes, double seed)
@cython.locals(n=Py_ssize_t, k=Py_ssize_t, count=Py_ssize_t)
cdef bint _are_different(list things) except -1
cdef class CallPath:
    cdef public object function, runtime
    cdef public list ones, batches, direct, seat
    cdef public object last
    cdef public long long passed
    cdef bint is_taken
    cpdef bint take(self) except -1
    cpdef object leave(self)
    @cython.locals(form=Served, count=Py_ssize_t, slopes=bint)
    cdef object run(self, tuple args, dict named, str how, bint disabled, bint asked)
    cdef bint goes_direct(self, tuple args, dict named) except -1
cdef object _size(object x)
@cython.locals(n=Py_ssize_t)
cdef bint _looks_like(tuple args, tuple places) except -1
