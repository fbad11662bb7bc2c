cimport cython
from wengert.compiler.call cimport memory
from wengert.compiler.call.captures cimport Captures
from wengert.compiler.call.executable cimport Executable, Workspace
from wengert.compiler.call.argument_reader cimport ArgumentReader, are_equal, are_in_order
from wengert.engine cimport Many, Value, _many
from wengert.ops cimport ieee
cdef int COMPILED, CHECKED_CALLS, FIXED, FLOAT, INT, VALUE, NUMBERS, VALUES, ITEMS, KEYED
cdef object MISSING
cdef list in_force, NO_VALUES
@cython.final
cdef class CacheEntry:
    cdef public object signature, candidate, latest, layout, lock
    cdef public list specializations
    cdef public dict elsewhere
    cdef public str fallback_reason, slow_reading, clause
    cdef public long long calls, examples, changes, min_examples, compile_after, used, checks, invalidations, not_finite, work
    cdef public bint is_eager, is_thorough
    cdef readonly bint batched
    cdef list readers, pool
    cdef tuple names, keys
    cdef Py_ssize_t first, last, least, arity
    cdef object numpy, ndarray
    cdef bint takes(self, Py_ssize_t given, dict named) except -1
    cpdef bint is_current(self, Call call) except -1
    cpdef object finished(self, object result, str how)
    cpdef bint is_milestone(self) except -1
@cython.final
cdef class Call:
    cdef CacheEntry entry
    cdef public object result, left, partial, ran
    cdef public list shares
    cdef readonly bint is_unproven, was_finite, was_computed
    cdef bint has_float, is_split
    cdef list tried, arrays, memory, values, seen
    cdef long long[::1] memory_at
    cdef Py_ssize_t count
    cpdef list served(self)
    @cython.locals(entry=CacheEntry, n=Py_ssize_t, given=Py_ssize_t, reader=ArgumentReader)
    cdef bint read(self, tuple args, dict named) except -1
    @cython.locals(elsewhere=dict)
    cdef bint _is_apart(self) except -1
    @cython.locals(n=Py_ssize_t)
    cdef bint _read_one(self, ArgumentReader reader, object x) except -1
    @cython.locals(entry=CacheEntry, batched=bint, at="long long", end="long long", rows=Py_ssize_t)
    cdef bint _read_numbers(self, ArgumentReader reader, object x) except -1
    @cython.locals(numbers=list, values=list)
    cdef bint _read_values(self, ArgumentReader reader, object x) except -1
    cdef bint _matches_count(self, Py_ssize_t count) except -1
    @cython.locals(rows=Py_ssize_t, start=Py_ssize_t)
    cdef Py_ssize_t _fill_rows(self, ArgumentReader reader, object x, long long at) except -1
    @cython.locals(length=Py_ssize_t)
    cdef Py_ssize_t _fill(self, ArgumentReader reader, object x, Py_ssize_t axis, long long at) except -1
    @cython.locals(number="long long", end="long long", is_bool=bint)
    cdef Py_ssize_t _fill_items(self, ArgumentReader reader, object x, long long at, Py_ssize_t length) except -1
    @cython.locals(entry=CacheEntry, n=Py_ssize_t, several=list, unchanged=Captures, with_grads=bint, later=bint, sweeps=bint, value=double)
    cdef object run_one(self, list arrays, list values, bint disabled)
    @cython.locals(with_grads=bint, scale=double, spaces=list, first=Workspace)
    cdef object run_batch(self, list arrays, Py_ssize_t count, str how, bint disabled)
    @cython.locals(entry=CacheEntry, spec=Executable, left=list, at=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
    cdef object _in_strips(self, list spaces, Workspace first, list arrays, Py_ssize_t count, str how, bint with_grads, double scale)
    @cython.locals(count=Py_ssize_t, is_whole=bint)
    cdef bint _split(self, list spaces, Workspace first, list arrays, Py_ssize_t at, Py_ssize_t end, bint with_grads, double scale, object results, list left) except -1
    cdef object _note_share(self, Executable spec, object rows)
    cdef object _mapped(self, object values, object dtype, bint are_finite)
    @cython.locals(n=Py_ssize_t, place=Py_ssize_t, operands=list, sums=list)
    cdef object _reduced(self, double value, object spaces, Workspace first, bint with_grads)
cdef Py_ssize_t _length(object readers) except -1
cdef class CallPath:
    cdef public object function, _server
    cdef public list ones, batches
    cdef public object last
    cdef public long long uses
    cdef public bint is_eager
    @cython.locals(entry=CacheEntry, call=Call, count=Py_ssize_t, served=list, is_eager=bint)
    cdef object serve(self, tuple args, dict named, str how, bint disabled)
