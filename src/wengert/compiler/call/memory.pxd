# The C version of memory.py. Cython reads this file when it compiles the
# modules of this package. memory.py says what each function does.

cdef extern from *:
    """
    #include <string.h>
    #include <math.h>

    #ifdef __GNUC__
    #define WENGERT_PREFETCH(at) __builtin_prefetch(at)
    #else
    #define WENGERT_PREFETCH(at) ((void)(at))
    #endif

    typedef void (*wengert_kernel)(int64_t, double, const void *const *, const double *, double *, double *const *,
                                   double *);
    static CYTHON_INLINE void wengert_call(long long code, long long n, double seed, long long inputs, long long params,
                                           long long grads, long long outputs, long long work, int unlocked)
    {
        PyThreadState *state = unlocked ? PyEval_SaveThread() : NULL;
        ((wengert_kernel)(intptr_t)code)(n, seed, (const void *const *)(intptr_t)inputs, (double *)(intptr_t)params,
                                         (double *)(intptr_t)grads, (double *const *)(intptr_t)outputs,
                                         (double *)(intptr_t)work);
        if (unlocked) PyEval_RestoreThread(state);
    }

    CYTHON_UNUSED static void wengert_let_others(void)
    {
        PyEval_RestoreThread(PyEval_SaveThread());
    }

    CYTHON_UNUSED static long long wengert_address(PyObject *x, int is_int, PyObject *shape, Py_ssize_t rows)
    {
        Py_buffer b;
        long long at = 0;
        if (PyObject_GetBuffer(x, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) { PyErr_Clear(); return 0; }
        int axes = rows != 0;
        int fits = b.ndim == axes + PyTuple_GET_SIZE(shape) && (rows <= 0 || b.shape[0] == rows) && b.itemsize == 8 && b.format && !((intptr_t)b.buf & 7)
            && (is_int ? b.format[0] == 'l' || b.format[0] == 'q' : b.format[0] == 'd') && !b.format[1];
        for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(shape); i++)
            fits = b.shape[axes + i] == PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (fits) at = (long long)(intptr_t)b.buf;
        PyBuffer_Release(&b);
        return at;
    }

    CYTHON_UNUSED static int wengert_indices(long long source, long long target, long long n, long long extent,
                                             int wraps)
    {
        const long long *from = (const long long *)(intptr_t)source;
        long long *to = (long long *)(intptr_t)target;
        for (long long i = 0; i < n; i++) {
            long long k = from[i];
            if (k < 0 && wraps) k += extent;
            if ((unsigned long long)k >= (unsigned long long)extent) return 0;
            to[i] = k;
        }
        return 1;
    }

    CYTHON_UNUSED static int wengert_are_exact(long long at, long long n)
    {
        const unsigned long long *x = (const unsigned long long *)(intptr_t)at, most = 1ULL << 53;
        unsigned long long bits = 0;
        for (long long i = 0; i < n; i++) bits |= x[i] + most;
        return bits < 2 * most;
    }

    CYTHON_UNUSED static int wengert_are_same(long long left, long long right, long long n)
    {
        return !memcmp((const void *)(intptr_t)left, (const void *)(intptr_t)right, 8 * (size_t)n);
    }

    CYTHON_UNUSED static void wengert_copy(long long source, long long target, long long n)
    {
        if (n > 0) memcpy((void *)(intptr_t)target, (const void *)(intptr_t)source, 8 * (size_t)n);
    }

    CYTHON_UNUSED static int wengert_are_below(long long places, long long n, long long count)
    {
        const long long *chosen = (const long long *)(intptr_t)places;
        unsigned long long signs = 0; /* whose first bit is set once a place or its distance to the last is negative */
        for (long long i = 0; i < n; i++)
            signs |= (unsigned long long)chosen[i] | ((unsigned long long)(count - 1) - (unsigned long long)chosen[i]);
        return !(signs >> 63);
    }

    CYTHON_UNUSED static void wengert_rows(long long source, long long target, long long places, long long n,
                                           long long width)
    {
        const long long *from = (const long long *)(intptr_t)source, *chosen = (const long long *)(intptr_t)places;
        long long *to = (long long *)(intptr_t)target;
        if (width == 1)
            for (long long i = 0; i < n; i++) to[i] = from[chosen[i]];
        else if (width == 2)
            for (long long i = 0; i < n; i++) {
                const long long *row = from + 2 * chosen[i];
                to[2 * i] = row[0];
                to[2 * i + 1] = row[1];
            }
        else if (width < 8)
            for (long long i = 0; i < n; i++)
                for (long long k = 0; k < width; k++) *to++ = from[width * chosen[i] + k];
        else
            for (long long i = 0; i < n; i++) {
                const char *ahead = (const char *)(from + width * chosen[i + 8 < n ? i + 8 : n - 1]);
                for (long long at = 0; at < 8 * width; at += 64) WENGERT_PREFETCH(ahead + at);
                memcpy(to + width * i, from + width * chosen[i], 8 * (size_t)width);
            }
    }

    CYTHON_UNUSED static int wengert_compare(long long how, long long left, long long left_step, long long right,
                                             long long right_step, long long n, int outcome)
    {
        const double *x = (const double *)(intptr_t)left, *y = (const double *)(intptr_t)right;
        int wrong = 0;
        double held[8] = {0.0}; /* how often the test held; doubles, which any processor adds several at a time */
        long long i = 0;
        #define WENGERT_EACH(test) \
            if (left_step == 1 && right_step == 0) { \
                const double b = *y; \
                for (; i + 8 <= n; i += 8) \
                    for (int k = 0; k < 8; k++) { const double a = x[i + k]; held[k] += (test) ? 1.0 : 0.0; } \
                for (int k = 0; k < 8; k++) wrong |= held[k] != (outcome ? (double)(i / 8) : 0.0); \
            } \
            for (; i < n; i++) { \
                const double a = x[i * left_step], b = y[i * right_step]; \
                wrong |= (test) != outcome; \
            } \
            return !wrong;
        switch (how) {
            case 0: WENGERT_EACH(a < b)
            case 1: WENGERT_EACH(a <= b)
            case 2: WENGERT_EACH(a > b)
            case 3: WENGERT_EACH(a >= b)
            case 4: WENGERT_EACH(a == b)
            case 5: WENGERT_EACH(a != b)
            case 6: WENGERT_EACH((a == b && !signbit(a) == !signbit(b)) || (a != a && b != b))
            default: WENGERT_EACH(-b <= a && a <= b)
        }
    }

    /* The places differ from each other. */
    CYTHON_UNUSED static void wengert_add(long long source, long long target, long long places, long long n)
    {
        const double *from = (const double *)(intptr_t)source;
        const long long *chosen = (const long long *)(intptr_t)places;
        for (long long i = 0; i < n; i++) ((double *)(intptr_t)target)[chosen[i]] += from[i];
    }

    CYTHON_UNUSED static void wengert_accumulate(long long source, long long target, long long n)
    {
        const double *from = (const double *)(intptr_t)source;
        double *to = (double *)(intptr_t)target;
        for (long long i = 0; i < n; i++) to[i] += from[i];
    }

    CYTHON_UNUSED static int wengert_finite(long long at, long long n)
    {
        const unsigned long long *x = (const unsigned long long *)(intptr_t)at, ones = 2047ULL << 52;
        unsigned long long bits = 0; /* the sign bit is set once all bits of an exponent are set */
        for (long long i = 0; i < n; i++) bits |= (x[i] & ones) + (1ULL << 52);
        return !(bits >> 63);
    }

    /* How often two comparisons agree. */
    CYTHON_UNUSED static long long wengert_same_side(long long left, double least, long long right, double other, long long n)
    {
        const double *x = (const double *)(intptr_t)left, *y = (const double *)(intptr_t)right;
        double sums[4] = {0.0};
        long long i = 0, same = 0;
        for (; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++)
                sums[k] += (x[i + k] > least ? 1.0 : -1.0) * (y[i + k] > other ? 1.0 : -1.0); /* those that agree less the others */
        for (; i < n; i++) same += (x[i] > least) == (y[i] > other);
        return same + n / 4 * 2 + (long long)(sums[0] + sums[1] + sums[2] + sums[3]) / 2;
    }

    CYTHON_UNUSED static double wengert_squares(long long at, long long n)
    {
        const double *x = (const double *)(intptr_t)at;
        double sums[8] = {0.0}, total = 0.0;
        long long i = 0;
        for (; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++) sums[k] += x[i + k] * x[i + k];
        for (; i < n; i++) total += x[i] * x[i];
        for (int k = 0; k < 8; k++) total += sums[k];
        return total;
    }

    /* Add, and sum the squares of what it becomes. */
    CYTHON_UNUSED static double wengert_add_squares(long long source, long long target, long long n)
    {
        const double *CYTHON_RESTRICT from = (const double *)(intptr_t)source;
        double *CYTHON_RESTRICT to = (double *)(intptr_t)target;
        double sums[8] = {0.0}, total = 0.0;
        long long i = 0;
        for (; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++) {
                to[i + k] += from[i + k];
                sums[k] += to[i + k] * to[i + k];
            }
        for (; i < n; i++) {
            to[i] += from[i];
            total += to[i] * to[i];
        }
        for (int k = 0; k < 8; k++) total += sums[k];
        return total;
    }

    CYTHON_UNUSED static double wengert_total(long long at, long long n)
    {
        const double *x = (const double *)(intptr_t)at;
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
        long long i = 0;
        for (; i + 4 <= n; i += 4) { a += x[i]; b += x[i + 1]; c += x[i + 2]; d += x[i + 3]; }
        for (; i < n; i++) a += x[i];
        return a + b + (c + d);
    }

    /* Unlike list.pop, it keeps the memory of the list for the next push. */
    static CYTHON_INLINE PyObject *wengert_pop(PyObject *pool)
    {
        Py_ssize_t n = PyList_GET_SIZE(pool);
        if (!n) Py_RETURN_NONE;
        Py_SET_SIZE((PyVarObject *)pool, n - 1);
        return ((PyListObject *)pool)->ob_item[n - 1];
    }

    static CYTHON_INLINE int wengert_push(PyObject *pool, PyObject *x)
    {
        Py_ssize_t n = PyList_GET_SIZE(pool);
        if (((PyListObject *)pool)->allocated <= n) return PyList_Append(pool, x);
        Py_INCREF(x);
        ((PyListObject *)pool)->ob_item[n] = x;
        Py_SET_SIZE((PyVarObject *)pool, n + 1);
        return 0;
    }

    static CYTHON_INLINE PyObject *wengert_contents(PyObject *cell, PyObject *missing)
    {
        PyObject *x = PyCell_GET(cell);
        if (!x) x = missing;
        Py_INCREF(x);
        return x;
    }

    CYTHON_UNUSED static PyObject *wengert_attribute(PyObject *x, PyObject *name, PyObject *missing)
    {
        PyObject *attribute = _PyObject_GenericGetAttrWithDict(x, name, NULL, 1);
        if (!attribute) {
            if (PyErr_Occurred()) {
                if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
                PyErr_Clear();
            }
            attribute = missing;
            Py_INCREF(attribute);
        }
        return attribute;
    }

    static CYTHON_INLINE int wengert_is_defined(PyObject *f, PyObject *code, PyObject *defaults)
    {
        PyObject *now = PyFunction_GET_DEFAULTS(f), *named = PyFunction_GET_KW_DEFAULTS(f);
        return PyFunction_GET_CODE(f) == code && (now ? now : Py_None) == defaults && (!named || named == Py_None);
    }

    /* It takes no references, as no other code runs. */
    CYTHON_UNUSED static Py_ssize_t wengert_first_changed(long long rows, Py_ssize_t row, Py_ssize_t count,
                                                          long long target, PyObject *missing)
    {
        for (; row < count; row++) {
            const long long *each = (const long long *)(intptr_t)rows + 4 * row, then = each[3];
            PyObject *source = (PyObject *)(intptr_t)each[1], *now;
            switch (each[0]) {
                case 0: case 5:
                    now = PyDict_GetItemWithError(source, (PyObject *)(intptr_t)each[2]);
                    if (!now && PyErr_Occurred()) { PyErr_Clear(); return row; }
                    break;
                case 1: case 6: now = PyCell_GET(source); break;
                case 2:
                    if (!wengert_is_defined(source, (PyObject *)(intptr_t)then, (PyObject *)(intptr_t)each[2])) return row;
                    continue;
                case 7:
                    if (PyContextVar_Get(source, NULL, &now) < 0) { PyErr_Clear(); return row; }
                    Py_XDECREF(now);  /* the context holds it */
                    if (now && (long long)(intptr_t)now == then) continue;
                    return row;
                case 3: if (then && ((PyTypeObject *)source)->tp_version_tag == then) continue; return row;
                default: now = PyList_GET_ITEM(source, 0);
            }
            if (each[0] < 5) {
                if ((now ? now : missing) != (PyObject *)(intptr_t)then) return row;
            } else {
                if (!now || !PyFloat_CheckExact(now)) return row;
                if (then >= 0) ((double *)(intptr_t)target)[then] = PyFloat_AS_DOUBLE(now);
            }
        }
        return count;
    }

    static CYTHON_INLINE unsigned int wengert_version(PyObject *kind)
    {
        return ((PyTypeObject *)kind)->tp_version_tag;
    }

    /* Whether two lists hold the same objects. */
    CYTHON_UNUSED static int wengert_are_identical(PyObject *now, PyObject *then)
    {
        Py_ssize_t n = PyList_GET_SIZE(then);
        return PyList_GET_SIZE(now) == n
            && (!n || !memcmp(((PyListObject *)now)->ob_item, ((PyListObject *)then)->ob_item, n * sizeof(PyObject *)));
    }

    /* Whether a dict holds the same objects under the same keys, in the same order. */
    CYTHON_UNUSED static int wengert_are_items(PyObject *now, PyObject *keys, PyObject *then)
    {
        Py_ssize_t at = 0, i = 0;
        PyObject *key, *x;
        if (PyDict_GET_SIZE(now) != PyList_GET_SIZE(keys)) return 0;
        for (; PyDict_Next(now, &at, &key, &x); i++)
            if (key != PyList_GET_ITEM(keys, i) || x != PyList_GET_ITEM(then, i)) return 0;
        return 1;
    }

    CYTHON_UNUSED static int wengert_are_names(PyObject *x, PyObject *then)
    {
        Py_ssize_t at = 0, i = 0, n = PyTuple_GET_SIZE(then);
        PyObject *key, *held = PyObject_GenericGetDict(x, NULL);
        if (!held) { PyErr_Clear(); return 0; }
        while (i <= n && PyDict_Next(held, &at, &key, NULL))
            i = i < n && key == PyTuple_GET_ITEM(then, i) ? i + 1 : n + 1;
        Py_DECREF(held);
        return i == n;
    }

    /* 0 also for an array that is not contiguous, or has no buffer format, such as one of dates. */
    CYTHON_UNUSED static int wengert_are_bytes(PyObject *now, PyObject *then)
    {
        Py_buffer x, y;
        int alike = 0;
        if (PyObject_GetBuffer(now, &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) { PyErr_Clear(); return 0; }
        if (PyObject_GetBuffer(then, &y, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) PyErr_Clear();
        else {
            alike = x.ndim == y.ndim && x.itemsize == y.itemsize && x.len == y.len && !strcmp(x.format, y.format);
            for (int i = 0; alike && i < x.ndim; i++) alike = x.shape[i] == y.shape[i];
            alike = alike && !memcmp(x.buf, y.buf, (size_t)x.len);
            PyBuffer_Release(&y);
        }
        PyBuffer_Release(&x);
        return alike;
    }

    /* A few are compared pairwise, many by a table of their addresses, of which at most half is full. */
    CYTHON_UNUSED static int wengert_are_distinct(PyObject *things)
    {
        enum { FEW = 8, ROOM = 128 };
        Py_ssize_t n = PyList_GET_SIZE(things);
        PyObject **item = ((PyListObject *)things)->ob_item, *here[ROOM], **table = here;
        if (n <= FEW) {
            for (Py_ssize_t i = 1; i < n; i++)
                for (Py_ssize_t k = 0; k < i; k++)
                    if (item[i] == item[k]) return 0;
            return 1;
        }
        size_t size = 4 * FEW, is_distinct = 1;
        while (size < 2 * (size_t)n) size *= 2;
        if (size > ROOM) table = (PyObject **)PyMem_Calloc(size, sizeof *table);
        else memset(here, 0, size * sizeof *here);
        if (!table) return 0;
        for (Py_ssize_t i = 0; is_distinct && i < n; i++) {
            size_t at = ((size_t)item[i] >> 4) * 0x9E3779B1u;
            for (at = (at ^ at >> 16) & (size - 1); table[at]; at = (at + 1) & (size - 1))
                if (table[at] == item[i]) { is_distinct = 0; break; }
            table[at] = item[i];
        }
        if (table != here) PyMem_Free(table);
        return (int)is_distinct;
    }

    CYTHON_UNUSED static int wengert_are_floats(PyObject *items, long long target, Py_ssize_t n)
    {
        double *to = (double *)(intptr_t)target;
        PyObject **item = PySequence_Fast_ITEMS(items);
        if (PySequence_Fast_GET_SIZE(items) != n) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            if (!PyFloat_CheckExact(item[i])) return 0;
            to[i] = PyFloat_AS_DOUBLE(item[i]);
        }
        return 1;
    }

    CYTHON_UNUSED static void wengert_scatter(long long source, long long target, long long places, long long n)
    {
        const double *from = (const double *)(intptr_t)source;
        const long long *chosen = (const long long *)(intptr_t)places;
        for (long long i = 0; i < n; i++)
            if (chosen[i] >= 0) ((double *)(intptr_t)target)[chosen[i]] = from[i];
    }

    CYTHON_UNUSED static int wengert_scatter_list(PyObject *source, long long target, long long places, long long n)
    {
        const long long *chosen = (const long long *)(intptr_t)places;
        if (PyList_GET_SIZE(source) != n) return 0;
        for (long long i = 0; i < n; i++) {
            PyObject *x = PyList_GET_ITEM(source, i);
            if (!PyFloat_CheckExact(x)) return 0;
            if (chosen[i] >= 0) ((double *)(intptr_t)target)[chosen[i]] = PyFloat_AS_DOUBLE(x);
        }
        return 1;
    }
    """
    object attribute "wengert_attribute"(object x, object name, object missing)
    Py_ssize_t first_changed "wengert_first_changed"(long long rows, Py_ssize_t row, Py_ssize_t count, long long target, object missing) noexcept
    unsigned int version "wengert_version"(object kind) noexcept
    bint are_identical "wengert_are_identical"(list now, list then) noexcept
    bint are_items "wengert_are_items"(dict now, list keys, list then) noexcept
    bint are_names "wengert_are_names"(object x, tuple then) noexcept
    bint are_bytes "wengert_are_bytes"(object now, object then) noexcept
    void scatter "wengert_scatter"(long long source, long long target, long long places, long long n) noexcept
    bint are_distinct "wengert_are_distinct"(list things) noexcept
    bint are_floats "wengert_are_floats"(object items, long long target, Py_ssize_t n) noexcept
    bint scatter_list "wengert_scatter_list"(list source, long long target, long long places, long long n) noexcept
    void call "wengert_call"(long long code, long long n, double seed, long long inputs, long long params, long long grads, long long outputs, long long work, bint unlocked) noexcept nogil
    long long address "wengert_address"(object x, bint is_int, tuple shape, Py_ssize_t rows) noexcept
    bint compare "wengert_compare"(long long how, long long left, long long left_step, long long right, long long right_step, long long n, bint outcome) noexcept nogil
    bint indices "wengert_indices"(long long source, long long target, long long n, long long extent, bint wraps) noexcept
    bint are_exact "wengert_are_exact"(long long at, long long n) noexcept
    bint are_same "wengert_are_same"(long long left, long long right, long long n) noexcept
    void copy "wengert_copy"(long long source, long long target, long long n) noexcept
    bint are_below "wengert_are_below"(long long places, long long n, long long count) noexcept
    void rows "wengert_rows"(long long source, long long target, long long places, long long n, long long width) noexcept
    void add "wengert_add"(long long source, long long target, long long places, long long n) noexcept
    bint finite "wengert_finite"(long long at, long long n) noexcept nogil
    double squares "wengert_squares"(long long at, long long n) noexcept
    double add_squares "wengert_add_squares"(long long source, long long target, long long n) noexcept
    long long same_side "wengert_same_side"(long long left, double least, long long right, double other, long long n) noexcept
    double total "wengert_total"(long long at, long long n) noexcept nogil
    void accumulate "wengert_accumulate"(long long source, long long target, long long n) noexcept nogil
    void let_others "wengert_let_others"() noexcept
    int check_signals "PyErr_CheckSignals"() except -1
    object pop "wengert_pop"(list pool)
    int push "wengert_push"(list pool, object x) except -1
    object contents "wengert_contents"(object cell, object missing)
    bint isfinite(double) noexcept

cdef inline bint is_exact(long long x) noexcept:
    return -(1LL << 53) <= x < (1LL << 53)

cdef inline double get(long long at) noexcept nogil:
    return (<double*><Py_ssize_t>at)[0]

cdef inline void put(long long at, double x) noexcept:
    (<double*><Py_ssize_t>at)[0] = x

cdef inline void put_int(long long at, long long x) noexcept:
    (<long long*><Py_ssize_t>at)[0] = x
