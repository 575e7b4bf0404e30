// The stacks of Python programs, taken by py-spy or pystack, if one of them is installed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher {

// By thread; "step (train.py:41)", innermost first.
using PythonStacks = std::map<pid_t, std::vector<std::string>>;

struct PythonTool {
  enum class Kind { None, PySpy, PyStack };
  Kind kind = Kind::None;
  std::string path;
};
// In the folders of `path`; see find_trusted_tool().
[[nodiscard]] PythonTool find_python_tool(std::string_view path);

// The process has an interpreter of Python in it.
[[nodiscard]] bool is_python(pid_t process);
// Does not stop the process. Blocks until the deadline at most.
[[nodiscard]] Result<PythonStacks> python_stacks(const PythonTool& tool, pid_t process,
                                                 std::chrono::steady_clock::time_point deadline);

// ---- pure ----

// What "py-spy dump --json" says.
[[nodiscard]] PythonStacks stacks_of_py_spy(std::string_view json);
// What "pystack remote" says.
[[nodiscard]] PythonStacks stacks_of_pystack(std::string_view text);
// One stack of both, innermost first: the interpreter's own functions stand for what Python says
// better.
[[nodiscard]] std::vector<std::string> mixed(const std::vector<std::string>& native,
                                             const std::vector<std::string>& python);
// "step (train.py:41)"
[[nodiscard]] std::string python_frame(std::string_view function, std::string_view file,
                                       std::int64_t line);
// Whether the text of /proc/PID/maps names an interpreter.
[[nodiscard]] bool names_python(std::string_view maps);

}  // namespace drun::launcher
