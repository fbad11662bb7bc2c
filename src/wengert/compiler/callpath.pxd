cimport cython
from wengert.compiler cimport memory
from wengert.compiler.executable cimport Executable
from wengert.compiler.argument_reader cimport ArgumentReader, are_equal
from wengert.engine cimport Many, Value, _many
from wengert.ops cimport ieee
cdef int COMPILED, CHECKED_CALLS, FIXED, FLOAT, WHOLE, VALUE, NUMBERS, VALUES, ITEMS, KEYED, FEW
cdef object MISSING
cdef list in_force, NONE
cdef class CacheEntry:
    cdef public object signature, candidate, left, partial, ran
    cdef public list specializations, shares
    cdef public str fallback_reason, clause
    cdef public long long calls, examples, changes, least, until, used, checks, invalidations, not_finite
    cdef public bint is_eager, is_thorough
    cdef readonly bint was_finite, was_computed, batched
    cdef list readers, arrays, memory, values, seen
    cdef tuple names
    cdef Py_ssize_t first, last, count
    cdef bint is_split, is_narrow
    cdef object numpy, ndarray
    @cython.locals(made=Executable)
    cpdef bint must_check(self) except -1
    cpdef list served(self)
    @cython.locals(n=Py_ssize_t, given=Py_ssize_t, reader=ArgumentReader)
    cdef bint read(self, tuple args, dict named) except -1
    @cython.locals(n=Py_ssize_t)
    cdef bint _take(self, ArgumentReader reader, object x) except -1
    @cython.locals(end="long long", rows=Py_ssize_t)
    cdef bint _take_numbers(self, ArgumentReader reader, object x) except -1
    cdef bint _take_values(self, ArgumentReader reader, object x) except -1
    cdef bint _is_count(self, Py_ssize_t count) except -1
    @cython.locals(n=Py_ssize_t, several=list, slopes=bint, value=double)
    cdef object run_one(self, list arrays, list values, bint disabled)
    @cython.locals(slopes=bint, scale=double)
    cdef object run_batch(self, list arrays, Py_ssize_t count, str how, bint disabled)
    @cython.locals(n=Py_ssize_t, place=Py_ssize_t, operands=list, sums=list)
    cdef object _shared(self, list arrays, Py_ssize_t count, str how, bint slopes, double scale)
    cdef object _each(self, object values, object dtype)
    cdef object _combined(self, double value, object node, bint finite)
cdef Py_ssize_t _length(object readers) except -1
@cython.locals(n=Py_ssize_t, k=Py_ssize_t, count=Py_ssize_t)
cdef bint _are_different(list things) except -1
cdef class CallPath:
    cdef public object function, runtime
    cdef public list ones, batches
    cdef list free
    cdef bint is_busy
    cdef public object last
    cdef public long long uses
    cdef public bint is_eager
    cpdef bint acquire(self) except -1
    cpdef object release(self)
    @cython.locals(entry=CacheEntry, count=Py_ssize_t, must_check=bint, is_eager=bint, waits=bint)
    cdef object serve(self, tuple args, dict named, str how, bint disabled)
