// The stacks of CPython 3.13 and 3.14, read from its memory without any tool: since 3.13 the
// interpreter has a table there that says where in its structures what is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/look/python_stacks.hpp"

namespace drun::launcher {

// Does not stop the process: what its threads change meanwhile is lost. An error says why it has no
// stacks: another version, or its memory may not be read. May hang in the file of its interpreter.
[[nodiscard]] Result<PythonStacks> read_python_stacks(pid_t process);

// ---- pure ----

// Copies from the memory of the process; false: there is none at the address.
using ReadMemory = std::function<bool(std::uint64_t address, void* to, std::size_t size)>;
// `table`: the address of the table.
[[nodiscard]] Result<PythonStacks> python_stacks_in(const ReadMemory& memory, std::uint64_t table);
// The line of the instruction with this number, by a code object's table of locations.
[[nodiscard]] std::int64_t line_of(std::string_view locations, std::int64_t first_line,
                                   std::uint64_t instruction);

}  // namespace drun::launcher
