from wengert.ops cimport ieee
cpdef bint is_traced(x)
cpdef object as_operand(x)
cpdef object number_of(x)
cpdef object concrete(x)
cpdef bint is_bool(x)
cdef object _binary(str name, x, y)
cdef object _recorder_of(xs)
