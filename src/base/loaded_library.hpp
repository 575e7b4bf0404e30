// Libraries that are loaded at run time, because most jobs do without them.
#pragma once

#include <dlfcn.h>

#include "drun/base/result.hpp"

namespace drun {

struct LibraryName {
  const char* file;     // "libcurl.so.4"
  const char* purpose;  // "a rendezvous at etcd": what needs it
  const char* version;  // the oldest that has all functions
  const char* package;  // Debian's
};

// The functions stay for as long as the process: the library is never closed.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const LibraryName& name);

  // Null in `function` if the library lacks it.
  template <typename Function>
  LoadedLibrary& find(const char* name, Function& function) {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle_, name));
    return *this;
  }
  // The same of one that it must have.
  template <typename Function>
  LoadedLibrary& need(const char* name, Function& function) {
    complete_ = find(name, function).complete_ && function != nullptr;
    return *this;
  }
  // Whether it is there and has all that was needed; else what to install.
  [[nodiscard]] Status status() const;
  // What status() says of one that lacks something.
  [[nodiscard]] Error too_old() const;

 private:
  LibraryName name_;
  void* handle_;
  bool complete_ = true;
};

}  // namespace drun
