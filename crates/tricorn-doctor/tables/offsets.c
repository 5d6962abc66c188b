/* Where the fields are that src/python/layout.rs has a row for: the headers of CPython say it.
 *
 *   cc -w -I PREFIX/include/python3.12 -I PREFIX/include/python3.12/internal offsets.c -o offsets && ./offsets
 *
 * For 3.10, 3.11 and 3.12, and for 3.13 to check a row of debug offsets.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#else
#include "frameobject.h"
#endif
#define P(name, s, f) printf("    %s: %zu,\n", name, offsetof(s, f))
int main(void){
  printf("// %s\n", PY_VERSION);
  P("interpreters_head", _PyRuntimeState, interpreters.head);
  P("interp_next", PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
  P("threads_head", PyInterpreterState, threads.head);
#else
  P("threads_head", PyInterpreterState, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030c0000
  P("ceval_gil", PyInterpreterState, ceval.gil);
#else
  P("runtime.gil", _PyRuntimeState, ceval.gil);
#endif
  P("gil.locked", struct _gil_runtime_state, locked);
  P("gil.holder", struct _gil_runtime_state, last_holder);
  P("gil.switch_number", struct _gil_runtime_state, switch_number);
  printf("    gil_size: %zu,\n", sizeof(struct _gil_runtime_state));
  P("t_prev", PyThreadState, prev);
  P("t_next", PyThreadState, next);
  P("t_interp", PyThreadState, interp);
  P("t_thread_id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
  P("t_native", PyThreadState, native_thread_id);
#endif
#if PY_VERSION_HEX >= 0x030d0000
  P("t_frame", PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
  P("t_cframe", PyThreadState, cframe);
  P("cframe.current_frame", _PyCFrame, current_frame);
#else
  P("t_frame", PyThreadState, frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000
  P("f_previous", _PyInterpreterFrame, previous);
#if PY_VERSION_HEX >= 0x030d0000
  P("f_exec", _PyInterpreterFrame, f_executable);
  P("f_instr", _PyInterpreterFrame, instr_ptr);
#else
  P("f_code", _PyInterpreterFrame, f_code);
  P("f_instr", _PyInterpreterFrame, prev_instr);
#endif
  P("f_owner", _PyInterpreterFrame, owner);
  printf("    frame_size: %zu\n", sizeof(_PyInterpreterFrame));
  P("co_qualname", PyCodeObject, co_qualname);
  P("co_code_adaptive", PyCodeObject, co_code_adaptive);
#else
  P("f_previous", struct _frame, f_back);
  P("f_code", PyFrameObject, f_code);
  P("f_lasti", PyFrameObject, f_lasti);
  P("f_state", PyFrameObject, f_state);
  P("co_code", PyCodeObject, co_code);
#endif
  P("co_filename", PyCodeObject, co_filename);
  P("co_name", PyCodeObject, co_name);
  P("co_firstlineno", PyCodeObject, co_firstlineno);
  P("co_linetable", PyCodeObject, co_linetable);
  printf("    code_size: %zu ob_size: %zu\n", sizeof(PyCodeObject), offsetof(PyVarObject, ob_size));
  P("ob_type", PyObject, ob_type);
  P("ob_sval", PyBytesObject, ob_sval);
  P("u_length", PyASCIIObject, length);
  P("u_state", PyASCIIObject, state);
  printf("    ascii: %zu compact: %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
  return 0;
}
