#include "launcher/look/python_stacks.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/json.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/look/child_output.hpp"
#include "launcher/look/trusted_tool.hpp"

namespace drun::launcher {
namespace {

using nlohmann::json;

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The text between the first `before` and the next `after`.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const auto start = text.find(before);
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start + before.size());
  return text.substr(0, text.find(after));
}

bool is_of_interpreter(std::string_view frame) {
  return frame.find("(libpython") != std::string_view::npos ||
         frame.find("(python") != std::string_view::npos || frame.starts_with("libpython") ||
         frame.starts_with("python");
}

}  // namespace

std::string python_frame(std::string_view function, std::string_view file, std::int64_t line) {
  return std::string(function) + " (" + base_name(file) + ":" + std::to_string(line) + ")";
}

PythonTool find_python_tool(std::string_view path) {
  if (auto found = find_trusted_tool("py-spy", path); !found.empty())
    return {PythonTool::Kind::PySpy, std::move(found)};
  if (auto found = find_trusted_tool("pystack", path); !found.empty())
    return {PythonTool::Kind::PyStack, std::move(found)};
  return {};
}

bool names_python(std::string_view maps) {
  while (!maps.empty()) {
    const std::string_view line = take_until(maps, '\n');
    const auto slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view file = line.substr(slash + 1);
    if (file.starts_with("python") || file.starts_with("libpython")) return true;
  }
  return false;
}

bool is_python(pid_t process) {
  return names_python(read_small_file("/proc/" + std::to_string(process) + "/maps").value_or(""));
}

Result<PythonStacks> python_stacks(const PythonTool& tool, pid_t process,
                                   std::chrono::steady_clock::time_point deadline) {
  const std::string pid = std::to_string(process);
  ChildProgram program;
  program.path = tool.path;
  const bool spy = tool.kind == PythonTool::Kind::PySpy;
  program.arguments =
      spy ? std::vector<std::string>{"py-spy", "dump", "--pid", pid, "--nonblocking", "--json"}
          : std::vector<std::string>{"pystack", "remote", "--no-block", pid};
  const auto output = output_of(program, deadline);
  if (!output) return output.error();
  return spy ? stacks_of_py_spy(*output) : stacks_of_pystack(*output);
}

PythonStacks stacks_of_py_spy(std::string_view text) {
  PythonStacks result;
  const json threads = parse_json(text);
  if (!threads.is_array()) return result;
  try {
    for (const json& thread : threads) {
      const auto number = thread.find("os_thread_id");
      if (number == thread.end() || !number->is_number_integer()) continue;
      std::vector<std::string>& frames = result[number->get<pid_t>()];
      for (const json& frame : thread.at("frames"))
        frames.push_back(python_frame(frame.at("name").get<std::string>(),
                                      frame.at("filename").get<std::string>(),
                                      frame.at("line").get<std::int64_t>()));
    }
  } catch (const json::exception&) {
    // A form that is not known: what was read is right.
  }
  return result;
}

PythonStacks stacks_of_pystack(std::string_view text) {
  PythonStacks result;
  std::vector<std::string>* frames = nullptr;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    constexpr std::string_view kThread = "Traceback for thread ";
    if (line.starts_with(kThread)) {
      const auto number = whole_number<pid_t>(between(line, kThread, " "));
      frames = number ? &result[*number] : nullptr;
      continue;
    }
    const std::string_view file = between(line, "(Python) File \"", "\"");
    const auto number = whole_number<std::int64_t>(between(line, "\", line ", ","));
    const auto name = line.rfind(", in ");
    if (frames == nullptr || file.empty() || !number || name == std::string_view::npos) continue;
    frames->push_back(python_frame(line.substr(name + 5), file, *number));
  }
  for (auto& [thread, outermost_first] : result)
    std::reverse(outermost_first.begin(), outermost_first.end());
  return result;
}

std::vector<std::string> mixed(const std::vector<std::string>& native,
                               const std::vector<std::string>& python) {
  if (python.empty()) return native;
  // What Python's innermost function has called outside of Python.
  std::vector<std::string> result(native.begin(),
                                  std::find_if(native.begin(), native.end(), is_of_interpreter));
  if (result.size() == native.size()) result.clear();  // no Python in it: it is another moment's
  result.insert(result.end(), python.begin(), python.end());
  return result;
}

}  // namespace drun::launcher
