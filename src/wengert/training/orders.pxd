cimport cython
cdef unsigned long long ALL
@cython.locals(step="unsigned long long", first="unsigned long long", second="unsigned long long", last="unsigned long long", other="unsigned long long", mixed="unsigned long long")
cpdef object shuffle(long long[::1] order, unsigned long long state)
