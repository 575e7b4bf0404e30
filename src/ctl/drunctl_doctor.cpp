#include "ctl/drunctl_doctor.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "doctor/gpu_checks.hpp"
#include "doctor/infiniband_checks.hpp"
#include "doctor/machine_checks.hpp"
#include "facts/gather.hpp"

namespace drun::ctl {
namespace {

namespace fs = std::filesystem;
using doctor::Check;

std::string variable(const CtlOptions& options, std::string_view name) {
  return environment_variable(options.environment, name).value_or("");
}

// In PATH; empty: there is none.
std::string found_in_path(const CtlOptions& options, const std::string& name) {
  const std::string path = variable(options, "PATH");
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string file = std::string(take_until(rest, ':')) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// The drun beside this program, else one in PATH.
std::string drun_program(const CtlOptions& options) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const std::string beside = (own.parent_path() / "drun").string();
  return !error && ::access(beside.c_str(), X_OK) == 0 ? beside : found_in_path(options, "drun");
}

// What it prints, both streams, and how it ends.
std::pair<std::string, int> output_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {"cannot start a shell", 127};
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  return {std::move(text), WIFEXITED(status) ? WEXITSTATUS(status) : 1};
}

// drun itself says whether it could start the program.
Check check_program(const CtlOptions& options) {
  constexpr const char* kName = "program";
  const auto& words = options.words;
  const std::string shown = as_name(words.front());
  const std::string drun = drun_program(options);
  if (drun.empty())
    return doctor::failed(kName, "there is no drun beside drunctl or in PATH", "install it");
  std::string command = shell_quoted(drun) + " --standalone --cluster none --dry-run --";
  for (const std::string& word : words)
    command += " " + shell_quoted(word);
  const auto [text, code] = output_of(command + " 2>&1");
  constexpr std::string_view kWouldNot = "workers would not start: ";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = take_until(rest, '\n');
    const auto at = line.find(kWouldNot);
    if (at != line.npos)
      return doctor::failed(kName, printable(line.substr(at + kWouldNot.size())),
                            "give the program as you would give it to drun");
    if (code != 0 && !line.empty())
      return doctor::failed(kName, printable(line), "see drun --help");
  }
  // drun leaves to Python what Python is to run.
  const bool python = fs::path(words.front()).filename().string().starts_with("python");
  if (python && words.size() > 1 && !words[1].starts_with("-") &&
      ::access(words[1].c_str(), R_OK) != 0)
    return doctor::failed(kName, "cannot open " + as_name(words[1]),
                          "it is looked for in the folder where drun is started");
  return doctor::passed(kName, shown + " can be started");
}

facts::Sheet own_sheet(const CtlOptions& options) {
  facts::FactsQuery question;
  question.interpreter = found_in_path(options, "python3");
  question.environment = options.environment;
  for (const std::string& word : options.words)
    if (question.files.empty() && fs::path(word).has_parent_path()) question.files.push_back(word);
  question.salt = variable(options, "TORCHELASTIC_RUN_ID");
  return facts::gather(question);
}

std::vector<Check> own_checks(const CtlOptions& options, const facts::Sheet& sheet) {
  std::vector<Check> checks = doctor::judge_machine(doctor::look_at_machine(""), sheet);
  const auto add = [&checks](std::vector<Check> more) {
    std::move(more.begin(), more.end(), std::back_inserter(checks));
  };
  const std::string temporary = variable(options, "TMPDIR");
  checks.push_back(doctor::check_memory());
  checks.push_back(doctor::check_disk(temporary.empty() ? "/tmp" : temporary));
  add(doctor::judge_gpus(doctor::ask_gpu_health(), doctor::count_gpu_devices("")));
  add(doctor::check_infiniband(""));
  if (!options.words.empty()) checks.push_back(check_program(options));
  return checks;
}

int tell(const CtlOptions& options, const std::vector<Check>& checks) {
  const doctor::Verdict verdict = doctor::worst(checks);
  if (options.json) {
    print("{\"verdict\":\"" + std::string(doctor::name_of(verdict)) +
          "\",\"checks\":" + encode(checks) + "}\n");
  } else {
    const auto count = [&](doctor::Verdict which) {
      return std::to_string(std::count_if(checks.begin(), checks.end(), [which](const Check& each) {
        return each.verdict == which;
      }));
    };
    print(doctor::text_of(checks) + count(doctor::Verdict::Pass) + " pass, " +
          count(doctor::Verdict::Warn) + " warn, " + count(doctor::Verdict::Fail) + " fail\n");
  }
  return verdict == doctor::Verdict::Fail ? kNo : kOk;
}

}  // namespace

int doctor(const CtlOptions& options, std::chrono::steady_clock::time_point deadline) {
  const auto worker = drun::worker(options.environment);
  const bool in_job = environment_variable(options.environment, "DRUN_ROUND") && worker;
  if (in_job && worker->local_rank > 0) return kOk;  // one for each node is enough
  const bool several = in_job && worker->group_world_size > 1;
  if (several && variable(options, "TORCHELASTIC_USE_AGENT_STORE") == "False")
    throw cli::UsageError("doctor needs the workers' store of drun: use --worker-store agent");
  doctor::NodeReport own;
  own.host = own_host_name();
  own.sheet = own_sheet(options);
  own.checks = own_checks(options, own.sheet);
  if (!several) return tell(options, own.checks);
  const auto checks = examine_nodes(*worker, std::move(own), deadline);
  if (!checks) return failed(checks.error());
  return worker->group_rank == 0 ? tell(options, *checks) : kOk;
}

}  // namespace drun::ctl
