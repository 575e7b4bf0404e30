// The name of a function as people read it in a stack. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// What a C++ compiler made of it, undone; without the version of its library ("@@GLIBC_2.34"); long
// template arguments and parameters as "...".
[[nodiscard]] std::string function_name(std::string_view symbol);
// The second half of it: "f<std::vector<int, std::allocator<int> > >(int)" is "f<...>(int)".
[[nodiscard]] std::string shortened(std::string_view name);

// Without the outermost frames that the system begins every program and every thread with.
void drop_start(std::vector<std::string>& frames);

// "libc.so.6" of its path; "[vdso]" of "[vdso: 4711]".
[[nodiscard]] std::string module_name(std::string_view path);

}  // namespace drun::launcher
