#include "launcher/look/dwfl_library.hpp"

#include <dlfcn.h>

#include "base/loaded_library.hpp"

namespace drun::launcher {

Result<DwflLibrary> load_dwfl() {
  DwflLibrary library;
  LoadedLibrary file({"libdw.so.1", "native stacks", "0.158", "libdw1"});
  file.need("dwfl_begin", library.begin)
      .need("dwfl_end", library.end)
      .need("dwfl_errmsg", library.message)
      .need("dwfl_linux_proc_report", library.report_process)
      .need("dwfl_report_end", library.end_report)
      .need("dwfl_linux_proc_attach", library.attach)
      .need("dwfl_getthread_frames", library.thread_frames)
      .need("dwfl_frame_pc", library.frame_address)
      .need("dwfl_addrmodule", library.module_at)
      .need("dwfl_module_info", library.module_information)
      .need("dwfl_module_addrinfo", library.symbol_at)
      .need("dwfl_linux_proc_find_elf", library.callbacks.find_elf)
      .need("dwfl_standard_find_debuginfo", library.callbacks.find_debug_information);
  const Status status = file.status();
  if (!status) return status.error();
  // Where a file has no debug information of its own libdw loads this, with some thirty libraries
  // behind it. Each of the processes that look would do so; those that are forked from here need
  // not. If it is not installed, libdw goes on without.
  (void)::dlopen("libdebuginfod.so.1", RTLD_LAZY);
  return library;
}

}  // namespace drun::launcher
