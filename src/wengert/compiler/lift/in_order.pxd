cimport cython
cdef int BITS, HALF, ADD, SUB, NEG, MUL, DIV, POW, DOT
cdef double SQUARE, CUBE, FOURTH
cdef unsigned long long MASK, LOW, MIDDLE
cdef inline unsigned long long reduced(unsigned long long x) noexcept
@cython.locals(a="unsigned long long", b="unsigned long long", c="unsigned long long", d="unsigned long long", middle="unsigned long long")
cdef inline unsigned long long times(unsigned long long x, unsigned long long y) noexcept
@cython.locals(at=Py_ssize_t, user="long long", operand="long long")
cpdef object set_levels(const long long[::1] users, const long long[::1] used, long long[::1] levels, unsigned char[::1] depends)
@cython.locals(count=Py_ssize_t, n=Py_ssize_t, k=Py_ssize_t, node="long long", code="long long", at="long long", end="long long", half="long long", x="unsigned long long", y="unsigned long long", square="unsigned long long", total="unsigned long long", power=double)
cpdef object evaluate(const long long[::1] nodes, const long long[::1] codes, const long long[::1] starts, const long long[::1] operands, const double[::1] constants, long long[::1] values)
@cython.locals(n=Py_ssize_t)
cpdef object multiply(long long[::1] xs, const long long[::1] ys)
