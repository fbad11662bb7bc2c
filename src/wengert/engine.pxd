cimport cython
from wengert.ops cimport ieee
from wengert.node cimport Node, is_many, refuse, settle
cdef int LEAF, ADD, SUB, MUL, DIV, POW, NEG, RELU, EXP, LOG, TANH, DOT, WHERE, HAND, LEFT, CODE, _pins, _closures
cdef long long _walks, WALK
cdef double TINY, inf
cdef object _hooks
@cython.no_gc
cdef class Value(Node):
    pass
@cython.no_gc
cdef class Many(Value):
    cdef readonly tuple _all
    cdef double* _partials
cdef inline int _fill(Value node, int code, double data, Value a, Value b, double da, double db) except -1
cdef object _unary(int code, double data, Value x, double dx)
@cython.locals(constant=double)
cdef object _binary(int code, double data, double x, double y, left, right, double dx, double dy)
cdef object _sum(double x, double y, left, right)
cdef object _difference(double x, double y, left, right)
cdef object _product(double x, double y, left, right)
cdef object _quotient(double x, double y, left, right)
cdef object _power(double x, double y, left, right, mod)
cpdef Many _many(int code, arguments, Many by_hand=*, bint over_leaves=*)
cdef inline double _number(x) except? -1.0
cdef inline double _operand(x) except? -1.0
@cython.locals(node=Value, taken=int)
cpdef list tape(list roots, bint reset=*, bint untaken=*)
cdef inline bint _is_over_leaves(Node node) noexcept
cdef inline int _taken(Many node) noexcept
cdef inline int _save_gradient(Node leaf) noexcept
cdef inline double _saved_gradient(Node leaf) noexcept
cdef inline int _meet(Node x, list found, bint reset) except -1
@cython.locals(node=Value)
cdef int _backward_pass(Value root, double gradient) except -1
@cython.locals(i=Py_ssize_t, taken=int, operand=ieee.Item)
cdef inline int _chain_rule(Node node) except -1
