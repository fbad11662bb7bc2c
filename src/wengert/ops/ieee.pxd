# The functions of ieee.py in C: Cython reads this file when it compiles engine.py.

cdef extern from *:
    """
    #include <math.h>

    #define wengert_compiled 1
    #define wengert_held(item) ((item) != NULL)

    /* One tick per node; the low 16 bits stay free for the code of its operation. */
    static long long wengert_clock = 0;
    static CYTHON_INLINE long long wengert_tick(void) { return wengert_clock += 1 << 16; }

    /* The layout of a node (node.pxd), and of one with many operands (engine.pxd). A dead node needs no mark. A Value
       that was computed and has no `a` is laid out as the second, though its type tells the size of the first: so all
       Values are of one type. */
    struct wengert_node {
        PyObject_HEAD
        long long made;
        double data, grad;
        PyObject *a, *b;
        double da, db;
        union { long long mark; struct wengert_node *next; };
    };
    struct wengert_many { struct wengert_node node; PyObject *all; double *partials; };
    #define WENGERT_MADE(node) (((struct wengert_node *)(node))->made)

    /* Dead Values for reuse, up to 5 MB of them, in the state in which wengert_new returns them. So a training step
       that frees the nodes of the last step while it makes its own does not call Python's allocator. */
    enum { WENGERT_SPARES = 1 << 16 };
    static struct wengert_node *wengert_spare = NULL;
    static int wengert_spares = 0;
    static PyTypeObject *wengert_value = NULL, *wengert_many = NULL;

    /* Makes a Value without operands, whose other fields are still to be set. */
    static CYTHON_INLINE PyObject *wengert_new(PyTypeObject *type)
    {
        struct wengert_node *node = wengert_spare;
        if (node) {
            wengert_spare = node->next;
            wengert_spares--;
            return (PyObject *)node;
        }
        node = (struct wengert_node *)PyObject_Malloc(sizeof *node);
        if (!node) return PyErr_NoMemory();
        Py_INCREF(Py_None);
        Py_INCREF(Py_None);
        node->a = node->b = Py_None;
        return PyObject_Init((PyObject *)node, type);
    }

    /* Makes a Value with room for many operands, whose fields of a node are still to be set. */
    CYTHON_UNUSED static PyObject *wengert_new_wide(PyTypeObject *type)
    {
        struct wengert_many *node = (struct wengert_many *)PyObject_Malloc(sizeof *node);
        if (!node) return PyErr_NoMemory();
        Py_INCREF(Py_None);
        Py_INCREF(Py_None);
        Py_INCREF(Py_None);
        node->node.a = node->node.b = node->all = Py_None;
        node->node.made = 0;
        node->partials = NULL;
        return PyObject_Init((PyObject *)node, type);
    }

    static void wengert_free(PyObject *object);

    /* Releases an operand. If it dies, it joins the list of dead nodes; other objects, and nodes of Python subclasses,
       which may have a __del__, are released as usual. */
    static CYTHON_INLINE void wengert_drop(PyObject *x, struct wengert_node **dead)
    {
        if (Py_REFCNT(x) == 1 && Py_TYPE(x)->tp_dealloc == wengert_free) {
            ((struct wengert_node *)x)->next = *dead;
            *dead = (struct wengert_node *)x;
        } else
            Py_DECREF(x);
    }

    /* Frees a node without references, and the nodes that die with it: in a loop, since a chain can be millions long
       and would overflow the C stack with recursion. */
    static void wengert_free(PyObject *object)
    {
        struct wengert_node *dead = (struct wengert_node *)object, *node;
        dead->next = NULL;
        while ((node = dead)) {
            PyTypeObject *type = Py_TYPE(node);
            int many = node->a == Py_None && node->made & 0xffff;  /* no leaf */
            dead = node->next;
            wengert_drop(node->a, &dead);
            wengert_drop(node->b, &dead);
            if (type == wengert_value && !many && wengert_spares < WENGERT_SPARES) {
                Py_INCREF(Py_None);
                Py_INCREF(Py_None);
                node->a = node->b = Py_None;
                Py_SET_REFCNT((PyObject *)node, 1);
                node->next = wengert_spare;
                wengert_spare = node;
                wengert_spares++;
                continue;
            }
            if (many || (type != wengert_value && PyType_IsSubtype(type, wengert_many))) {
                PyObject *all = ((struct wengert_many *)node)->all;
                if (all != Py_None && Py_REFCNT(all) == 1)  /* no other reference: it can be emptied first */
                    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all); i++) {
                        PyObject *x = PyTuple_GET_ITEM(all, i);
                        PyTuple_SET_ITEM(all, i, NULL);
                        wengert_drop(x, &dead);
                    }
                Py_DECREF(all);
                PyMem_Free(((struct wengert_many *)node)->partials);
            }
            type->tp_free(node);
            if (wengert_value->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);  /* so in a free-threaded Python */
        }
    }

    /* Visits the operands of a node for the garbage collector, which tracks only nodes of Python subclasses: it finds
       their attributes by itself, and the operands by this function. */
    static int wengert_traverse(PyObject *node, visitproc visit, void *arg)
    {
        Py_VISIT(((struct wengert_many *)node)->all);
        return 0;
    }

    /* Value(...) and Many(...): a leaf with its own tick, whatever happens in its __init__. With more than a number,
       `wengert_kind` chooses the class. */
    static newfunc wengert_new_value = NULL, wengert_new_many = NULL;
    static PyObject *wengert_kind = NULL;
    static PyObject *wengert_make_many(PyTypeObject *type, PyObject *arguments, PyObject *named)
    {
        PyObject *node = wengert_new_many(type, arguments, named), *none = node ? PyTuple_New(0) : NULL;
        if (!none) { Py_XDECREF(node); return NULL; }
        Py_SETREF(((struct wengert_many *)node)->all, none);
        WENGERT_MADE(node) = wengert_tick();
        return node;
    }
    static PyObject *wengert_make(PyTypeObject *type, PyObject *arguments, PyObject *named)
    {
        PyObject *kind, *node = NULL;
        if (!named && PyTuple_GET_SIZE(arguments) < 2) {
            node = wengert_new_value(type, arguments, named);
            if (node) WENGERT_MADE(node) = wengert_tick();
            return node;
        }
        kind = PyObject_CallFunctionObjArgs(wengert_kind, type, arguments, named ? named : Py_None, NULL);
        if (!kind) return NULL;
        if (!PyType_Check(kind) || !PyType_IsSubtype((PyTypeObject *)kind, wengert_value))
            PyErr_Format(PyExc_TypeError, "the class of a Value has to be Value or a subclass, not %R", kind);
        else if (((PyTypeObject *)kind)->tp_new == wengert_make_many)
            node = wengert_make_many((PyTypeObject *)kind, arguments, named);
        else if ((node = wengert_new_value((PyTypeObject *)kind, arguments, named)))
            WENGERT_MADE(node) = wengert_tick();
        Py_DECREF(kind);
        return node;
    }

    /* Sets the deallocation above for these two types and their subclasses: Cython's own would recurse, and a
       __dealloc__ against that took four times the instructions. Also makes Value(...) call `kind`, and makes
       Value.name = function work as for a class written in Python. */
    CYTHON_UNUSED static int wengert_recycle(PyTypeObject *value, PyTypeObject *many, PyObject *kind)
    {
        wengert_value = value;
        wengert_many = many;
        Py_INCREF(kind);
        wengert_kind = kind;
        if (wengert_value->tp_basicsize != (Py_ssize_t)sizeof(struct wengert_node)
            || wengert_many->tp_basicsize != (Py_ssize_t)sizeof(struct wengert_many)) {
            PyErr_SetString(PyExc_SystemError, "ieee.pxd lays out a node differently from node.pxd and engine.pxd");
            return -1;
        }
        wengert_value->tp_dealloc = wengert_many->tp_dealloc = wengert_free;
        wengert_many->tp_traverse = wengert_traverse;
        wengert_new_value = wengert_value->tp_new;
        wengert_new_many = wengert_many->tp_new;
        wengert_value->tp_new = wengert_make;
        wengert_many->tp_new = wengert_make_many;
        wengert_value->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
        PyType_Modified(wengert_value);
        return 0;
    }

    /* Has the objects of a type that derives from these in C, and adds no fields, end as they do: in a loop. */
    CYTHON_UNUSED static void wengert_end_alike(PyTypeObject *type)
    {
        type->tp_dealloc = type->tp_base->tp_dealloc;
    }

    /* Returns an item of a list or tuple without counting a reference, for loops over many parameters; NULL if it is
       not a Value. */
    static CYTHON_INLINE struct wengert_node *wengert_at(PyObject *items, Py_ssize_t i, PyTypeObject *value)
    {
        PyObject *x = PySequence_Fast_GET_ITEM(items, i);
        return Py_IS_TYPE(x, value) || PyType_IsSubtype(Py_TYPE(x), value) ? (struct wengert_node *)x : NULL;
    }

    /* Returns 1, or -1 if an exception is set already. */
    #define wengert_no_error() (PyErr_Occurred() ? -1 : 1)

    /* True if the garbage collector does not track an item, so that it contains nothing, like a number or a string. */
    #define wengert_bare(items, i) (!PyObject_IS_GC(PySequence_Fast_GET_ITEM(items, i)))

    /* Returns an empty list with memory for n items, so that appending them does not reallocate it. */
    CYTHON_UNUSED static PyObject *wengert_room(Py_ssize_t n)
    {
        PyObject *list = PyList_New(n);
        if (list) Py_SET_SIZE(list, 0);
        return list;
    }

    /* Appends the items of another list from the i-th on, as long as they are leaves of rising age; items that contain
       nothing, such as numbers, are skipped. The inner loop runs while there is memory in the list. */
    CYTHON_UNUSED static Py_ssize_t wengert_take(PyObject *list, PyObject *items, Py_ssize_t i, PyTypeObject *value)
    {
        PyListObject *to = (PyListObject *)list;
        Py_ssize_t n = PyList_GET_SIZE(list);
        PyObject **from = ((PyListObject *)items)->ob_item, **next = from + i, **end = from + PyList_GET_SIZE(items);
        long long last = n ? WENGERT_MADE(to->ob_item[n - 1]) : -1, made;
        for (; next < end; next++) {
            PyObject **out = to->ob_item + n, *x;
            PyObject **stop = end - next < to->allocated - n ? end : next + (to->allocated - n);
            while (next < stop) {
                x = *next;
                if (!Py_IS_TYPE(x, value)) break;
                made = WENGERT_MADE(x);
                if (made & 0xffff || made <= last) break;
                last = made;
                Py_INCREF(x);
                *out++ = x;
                next++;
            }
            n = out - to->ob_item;
            Py_SET_SIZE(to, n);
            if (next == end) break;
            x = *next;
            if (!Py_IS_TYPE(x, value) && !PyType_IsSubtype(Py_TYPE(x), value)) {
                if (PyObject_IS_GC(x)) break;
                continue;
            }
            if (WENGERT_MADE(x) & 0xffff || WENGERT_MADE(x) <= last) break;
            last = WENGERT_MADE(x);
            if (PyList_Append(list, x) < 0) return -1;
            n++;
        }
        return next - from;
    }

    /* Sorts nodes by tick. Ticks are unique, and most of a graph is made at once: so the nodes that are not much older
       than the newest are put into a table, indexed by age, and read in order. The few older ones, such as parameters,
       come first: by insertion sort from the end, as a walk finds them almost in reverse order, or if they are many by
       radix sort, 11 bits at a time, lowest first, over the bits in which their ticks differ. */
    CYTHON_UNUSED static int wengert_sort(PyObject *list)
    {
        Py_ssize_t n = PyList_GET_SIZE(list), i, j;
        PyObject **nodes = ((PyListObject *)list)->ob_item, *node;
        long long low, high, made, age, ages = 2 * (long long)n;
        int shift;
        if (n > 64) {
            PyObject **table = (PyObject **)PyMem_RawCalloc((size_t)ages, sizeof(PyObject *)), **next = table;
            if (!table) { PyErr_NoMemory(); return -1; }
            for (high = i = 0; i < n; i++) if (WENGERT_MADE(nodes[i]) > high) high = WENGERT_MADE(nodes[i]);
            for (i = j = 0; i < n; i++) {
                age = (high >> 16) - (WENGERT_MADE(nodes[i]) >> 16);
                if (age < ages) table[age] = nodes[i];
                else nodes[j++] = nodes[i];
            }
            for (i = n, n = j; i > n; next++) if (*next) nodes[--i] = *next;
            PyMem_RawFree(table);
        }
        if (n <= 64) {
            for (i = 0, j = n - 1; i < j; i++, j--) { node = nodes[i]; nodes[i] = nodes[j]; nodes[j] = node; }
            for (i = 1; i < n; i++) {
                node = nodes[i];
                made = WENGERT_MADE(node);
                for (j = i; j > 0 && WENGERT_MADE(nodes[j - 1]) > made; j--) nodes[j] = nodes[j - 1];
                nodes[j] = node;
            }
            return 0;
        }
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
    struct wengert_node:
        long long _made "made"
        double _data "data"
        double _grad "grad"
    ctypedef wengert_node* Item "struct wengert_node *"
    Item at "wengert_at"(object items, Py_ssize_t i, type value) noexcept
    bint held "wengert_held"(Item item) noexcept
    long long tick "wengert_tick"() noexcept nogil
    object new "wengert_new"(type value)
    object new_many "wengert_new_wide"(type value)
    int recycle "wengert_recycle"(type value, type many, object kind) except -1
    void end_alike "wengert_end_alike"(type derived) noexcept
    int no_error "wengert_no_error"() except -1
    bint is_bare "wengert_bare"(object items, Py_ssize_t i) noexcept
    object identity "PyLong_FromVoidPtr"(object x)
    list contents "PyDict_Values"(object x)
    list room "wengert_room"(Py_ssize_t n)
    Py_ssize_t take "wengert_take"(list found, list items, Py_ssize_t i, type value) except -1
    int sort "wengert_sort"(list nodes) except -1
    double exp(double) noexcept nogil
    double log(double) noexcept nogil
    double tanh(double) noexcept nogil
    double fabs(double) noexcept nogil
    double sqrt(double) noexcept nogil
    double power "pow"(double, double) noexcept nogil

cdef extern from "Python.h":
    void* PyMem_Malloc(size_t) noexcept
    void PyObject_GC_UnTrack(void*) noexcept
    double PyLong_AsDouble(object) except? -1.0

ctypedef fused Number:
    double
    object

cdef inline Number root(Number x) noexcept:
    if Number is double:
        return sqrt(x)
    return sqrt(x) if isinstance(x, float) else x**0.5

cdef inline double divide(double x, double y) noexcept nogil:
    return x / y

cdef inline bint is_float(object x):
    return isinstance(x, float)

cdef inline double whole(object n) except? -1.0:
    try:
        return PyLong_AsDouble(n)
    except OverflowError:
        return 1e308 * (10.0 if n > 0 else -10.0)

cdef inline double* floats(Py_ssize_t n) except NULL:
    cdef double* array = <double*>PyMem_Malloc(n * sizeof(double))
    if array == NULL:
        raise MemoryError()
    return array

cdef inline void untrack(object container) noexcept:
    PyObject_GC_UnTrack(<void*>container)
