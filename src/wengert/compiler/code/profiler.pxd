# The function of profiler.py in C: Cython reads this file when it compiles call_trace.py.

ctypedef int (*Handler)(object, object, int, object) except -1

cdef extern from *:
    """
    typedef int (*wengert_handler)(PyObject *, PyObject *, int, PyObject *);
    static wengert_handler wengert_handle = NULL;  /* of this module; the trace is what differs */

    static int wengert_event(PyObject *trace, PyFrameObject *frame, int what, PyObject *arg)
    {
        if (what == PyTrace_C_RETURN) return 0;  /* a third of all events */
        return wengert_handle(trace, (PyObject *)frame, what, arg ? arg : Py_None);
    }

    CYTHON_UNUSED static void wengert_start(PyObject *trace, wengert_handler handler)
    {
        wengert_handle = handler;
        PyEval_SetProfile(wengert_event, trace);
    }
    """
    void start "wengert_start"(object trace, Handler handler) noexcept
