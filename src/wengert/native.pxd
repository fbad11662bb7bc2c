# What native.py says in Python, said in C: Cython reads this file when it compiles engine.py.

cdef extern from *:
    """
    #include <math.h>

    #define wengert_compiled 1

    /* One tick a node; the low 16 bits are left free for the code of its operation. */
    static long long wengert_clock = 0;
    static inline long long wengert_tick(void) { return wengert_clock += 1 << 16; }

    /* A node as node.pxd lays it out. */
    struct wengert_node { PyObject_HEAD long long made; double data, grad; PyObject *a, *b; double da, db; long long mark; };
    #define WENGERT_MADE(node) (((struct wengert_node *)(node))->made)

    /* A new object of a type that adds no field to a node. What Cython makes of Value.__new__(Value) asks the type for
       its allocator, clears the memory, and looks at the arguments that there are not: three times the work. */
    static inline PyObject *wengert_new(PyObject *type)
    {
        struct wengert_node *node;
        if (((PyTypeObject *)type)->tp_basicsize != (Py_ssize_t)sizeof *node) {
            PyErr_SetString(PyExc_SystemError, "native.pxd and node.pxd lay out a node differently");
            return NULL;
        }
        node = (struct wengert_node *)PyObject_Malloc(sizeof *node);
        if (!node) return PyErr_NoMemory();
        Py_INCREF(Py_None);
        Py_INCREF(Py_None);
        node->a = node->b = Py_None;
        node->mark = 0;
        return PyObject_Init((PyObject *)node, (PyTypeObject *)type);
    }

    /* Sorts nodes by tick. A walk finds nodes almost in reverse order, so they are reversed first. A few are then
       sorted by insertion; many by 11 bits at a time, lowest first, over the bits in which their ticks differ. */
    static int wengert_sort(PyObject *list)
    {
        Py_ssize_t n = PyList_GET_SIZE(list), i, j;
        PyObject **nodes = ((PyListObject *)list)->ob_item, *node;
        long long low, high, made;
        int shift;
        for (i = 0, j = n - 1; i < j; i++, j--) { node = nodes[i]; nodes[i] = nodes[j]; nodes[j] = node; }
        if (n < 64) {
            for (i = 1; i < n; i++) {
                node = nodes[i];
                made = WENGERT_MADE(node);
                for (j = i; j > 0 && WENGERT_MADE(nodes[j - 1]) > made; j--) nodes[j] = nodes[j - 1];
                nodes[j] = node;
            }
            return 0;
        }
        for (i = 1; i < n && WENGERT_MADE(nodes[i - 1]) <= WENGERT_MADE(nodes[i]); i++) {}
        if (i == n) return 0;
        struct item { long long tick; PyObject *node; } *from, *to, *swap;
        from = (struct item *)PyMem_RawMalloc(2 * (size_t)n * sizeof(struct item));
        if (!from) { PyErr_NoMemory(); return -1; }
        to = from + n;
        low = high = WENGERT_MADE(nodes[0]) >> 16;
        for (i = 0; i < n; i++) {
            made = WENGERT_MADE(nodes[i]) >> 16;
            from[i].tick = made;
            from[i].node = nodes[i];
            if (made > high) high = made;
            if (made < low) low = made;
        }
        for (shift = 0; (high - low) >> shift; shift += 11) {
            size_t places[2048] = {0}, place = 0, many;
            for (i = 0; i < n; i++) places[((from[i].tick - low) >> shift) & 2047]++;
            for (i = 0; i < 2048; i++) { many = places[i]; places[i] = place; place += many; }
            for (i = 0; i < n; i++) to[places[((from[i].tick - low) >> shift) & 2047]++] = from[i];
            swap = from; from = to; to = swap;
        }
        for (i = 0; i < n; i++) nodes[i] = from[i].node;
        PyMem_RawFree(from < to ? from : to);
        return 0;
    }
    """
    enum: COMPILED "wengert_compiled"
    long long tick "wengert_tick"() noexcept nogil
    object new "wengert_new"(type kind)
    int sort "wengert_sort"(list nodes) except -1
    double exp(double) noexcept nogil
    double log(double) noexcept nogil
    double tanh(double) noexcept nogil
    double fabs(double) noexcept nogil
    double sqrt(double) noexcept nogil
    double power "pow"(double, double) noexcept nogil

cdef extern from "Python.h":
    void* PyMem_RawMalloc(size_t) noexcept nogil
    void PyMem_RawFree(void*) noexcept nogil
    void PyObject_GC_UnTrack(void*) noexcept
    double PyLong_AsDouble(object) except? -1.0

cdef inline double divide(double x, double y) noexcept nogil:
    return x / y

cdef inline double whole(object n) except? -1.0:
    try:
        return PyLong_AsDouble(n)
    except OverflowError:
        return 1e308 * (10.0 if n > 0 else -10.0)

cdef inline double* floats(Py_ssize_t n) except NULL:
    cdef double* array = <double*>PyMem_RawMalloc(n * sizeof(double))
    if array == NULL:
        raise MemoryError()
    return array

cdef inline void release(double* array) noexcept nogil:
    PyMem_RawFree(array)

cdef inline void untrack(object container) noexcept:
    PyObject_GC_UnTrack(<void*>container)
