#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "cli/flag_names.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"

namespace drun::launcher {
namespace {

bool is_python_file(std::string_view program) {
  return program.size() > 3 && program.ends_with(".py");
}

// A program that is given such flags is another launcher.
bool names_a_launcher(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  for (const char* const launcher : {"drun", "drun-launch", "torchrun", "torch.distributed.run",
                                     "torch.distributed.launch", "accelerate"})
    if (name == launcher) return true;
  return false;
}

// Flags that programs hardly have themselves: those that say how many take part and where they
// meet.
const cli::Flag* only_of_launchers(const std::string& word) {
  if (!word.starts_with("--")) return nullptr;
  const std::string name = cli::dashed(word.substr(2, word.find('=') - 2));
  for (const char* const own : {"nnodes", "nproc-per-node", "max-restarts", "rdzv-endpoint",
                                "rdzv-id", "rdzv-backend", "rdzv-conf"})
    if (name == own) return drun_program(false).find(name);
  return nullptr;
}

// torchrun is silent about these too, and runs one worker.
void note_flags_after_the_program(const BuildInput& given, Options& options) {
  for (const std::string& word : given.program) {
    if (word == "--" || names_a_launcher(word)) return;
    const cli::Flag* const flag = only_of_launchers(word);
    if (flag == nullptr || given.flags.find(flag->name) != nullptr) continue;
    options.notes.push_back(in_quotes(word.substr(0, word.find('='))) +
                            " comes after the program and is left to it; drun's flags go before " +
                            in_quotes(given.program.front()));
    return;
  }
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
  if (program.empty() && flags.on("explain")) return;
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
  note_flags_after_the_program(given, options);
}

}  // namespace drun::launcher
