#include "base/environment_variable.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"

namespace drun::launcher {
namespace {

bool is_python_file(std::string_view program) {
  return program.size() > 3 && program.ends_with(".py");
}

}  // namespace

bool is_launch(std::string_view program_name) {
  return program_name == "drun-launch" || program_name.ends_with("/drun-launch");
}

void build_command(const BuildInput& given, Options& options) {
  const cli::GivenFlags& flags = given.flags;
  const auto& program = given.program;
  const bool module = flags.on("module");
  const bool script = flags.on("run-path");
  const bool no_python = flags.on("no-python");
  if (module && no_python) {
    throw cli::UsageError("-m runs a Python module, --no-python runs none: give one of them");
  }
  if (module && script) {
    throw cli::UsageError("-m names a module, --run-path a file: give one of them");
  }
  const bool append_rank = given.launch && !flags.on("use-env");
  if (append_rank && no_python) {
    throw cli::UsageError("--no-python needs --use-env: only Python scripts expect --local-rank=N");
  }
  if (program.empty() || program.front().empty()) {
    throw cli::UsageError(
        module ? "-m needs the name of a module: drun [flags] -m MODULE [args...]"
               : "no program given: drun [flags] PROGRAM [args...] (drun --help lists the flags)");
  }
  const bool python = module || script || (!no_python && is_python_file(program.front()));
  std::vector<std::string>& command = options.command;
  command.clear();
  if (python) {
    const auto interpreter = environment_variable(options.inherited, "PYTHON_EXEC").value_or("");
    command = {interpreter.empty() ? "python3" : interpreter, "-u"};
    if (module) command.emplace_back("-m");
  }
  options.python = python;
  options.script_at = python && !module ? command.size() : 0;
  options.substitute_from = python ? command.size() : 1;
  command.push_back(program.front());
  if (append_rank) command.emplace_back("--local-rank=${local_rank}");
  command.insert(command.end(), program.begin() + 1, program.end());
}

}  // namespace drun::launcher
