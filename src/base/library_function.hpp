// Functions of libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

namespace drun {

// False, and null in `function`, if the library lacks it.
template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace drun
