// Options of the thread sanitizer in every test program, however it is started; TSAN_OPTIONS adds to them.

// Tests fork ranks from a process that has threads already (the root's of ncclGetUniqueId), and those start
// threads of their own; the sanitizer otherwise ends such children.
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0";
}
