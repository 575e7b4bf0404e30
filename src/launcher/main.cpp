// drun: parse, run, give the exit code.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/argv.hpp"
#include "base/environment_variable.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/shell_quote.hpp"
#include "base/standard_streams.hpp"
#include "drun/base/result.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/agent/excluded_hosts.hpp"
#include "launcher/command_line/parse.hpp"
#include "launcher/devices/gpu_release.hpp"
#include "launcher/devices/gpu_usage.hpp"
#include "launcher/dry_run.hpp"
#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/own_words.hpp"
#include "launcher/leaving/early_end.hpp"
#include "launcher/local_nodes/local_nodes.hpp"
#include "launcher/local_nodes/replica_groups.hpp"
#include "launcher/look/stack_helper.hpp"
#include "launcher/output/output_lines.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/starter/made_token.hpp"
#include "launcher/starter/remote_end.hpp"
#include "launcher/starter/start_hosts.hpp"
#include "launcher/telling/own_log.hpp"
#include "launcher/workers/preflight.hpp"
#include "secure/given_tls.hpp"
#include "secure/token_source.hpp"

namespace {

// Out of the environment. Nullopt: none.
struct FoundTokens {
  std::optional<drun::Result<drun::secure::Token>> given;  // by the user
  std::optional<drun::Result<drun::secure::Token>> made;   // by the drun that starts this one
};

// The exit code: 0, or kDrunFailed if the text cannot be written.
int print(const std::string& text) {
  const auto written = drun::write_standard_output(text);
  if (written) return 0;
  drun::log::error("cannot {}", written.error().what());
  return drun::kDrunFailed;
}

// To stderr, with what the drun that has started this one looks for.
void say(const drun::launcher::hosts::WordMarks& marks, const std::string& text) {
  const std::string bytes = drun::launcher::hosts::marked(marks, text);
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

// drun's own lines with --timestamps, as its output has them later. Those of a drun that another
// has started have the time of that one.
std::string stamped(const drun::launcher::hosts::WordMarks& marks, bool times,
                    const std::string& text) {
  if (!times || marks != drun::launcher::hosts::WordMarks()) return text;
  return drun::launcher::time_stamp(std::chrono::system_clock::now()) + text;
}

// Before the workers' time.
int fail(const drun::launcher::Options& options, int exit_code, const std::string& why) {
  drun::log::error("{}", why);
  if (!options.dry_run) drun::launcher::report_early(options.report_file, exit_code, why);
  return exit_code;
}

// The job ends here, before an agent of it has begun.
int end_early(const drun::launcher::Options& options, int exit_code, const std::string& why) {
  fail(options, exit_code, why);
  drun::launcher::tell_early_end(options, exit_code, why);
  return exit_code;
}

// One world: of its agents, this is one or the one that starts them.
int start(const drun::launcher::Options& options) {
  using namespace drun;
  if (options.start) return launcher::run_hosts(options);
  return options.local_nodes > 0 ? launcher::run_local_nodes(options)
                                 : launcher::run_agent(options);
}

int start_all(const drun::launcher::Options& options) {
  using namespace drun::launcher;
  return starts_groups(options) ? run_replica_groups(options, start) : start(options);
}

// This process becomes the command that starts drun elsewhere. The exit code if it cannot.
int become(const drun::launcher::Options& options) {
  std::string line;
  for (const std::string& word : options.instead) {
    if (options.dry_run && word == "--dry-run") continue;
    line += (line.empty() ? "" : " ") + drun::shell_quoted(word);
  }
  if (options.dry_run) return print(line + "\n");
  const std::vector<char*> words = drun::argv_of(options.instead);
  ::putenv(const_cast<char*>(options.instead_mark.c_str()));
  std::string token;
  if (options.token)
    token = options.token->handed_over(drun::secure::kTokenVariable);
  else if (const auto made = drun::launcher::made_token(options))
    token = made->handed_over(drun::secure::kMadeTokenVariable);
  if (!token.empty()) ::putenv(token.data());
  ::execvp(words.front(), words.data());
  const int error = errno;
  for (const auto variable : {drun::secure::kTokenVariable, drun::secure::kMadeTokenVariable})
    ::unsetenv(std::string(variable).c_str());
  drun::secure::wipe(token);
  return fail(options, error == ENOENT ? drun::kNotFound : drun::kCannotRun,
              "cannot start " + options.instead.front() + ": " +
                  std::generic_category().message(error) +
                  "; --nnodes 1 is a job of this node alone");
}

// All agents have the one that was made, whatever a login on one host sets. Files are read where
// the agents are: each host has its own.
drun::Status use_token(drun::launcher::Options& options, FoundTokens found) {
  using namespace drun;
  const bool elsewhere = options.start || !options.instead.empty();
  options.token_is_made = found.made.has_value();
  auto given = secure::given_tls(std::move(found.made ? found.made : found.given),
                                 elsewhere ? "" : options.token_file,
                                 elsewhere ? secure::CertificateFiles() : options.certificate);
  if (!given) return given.error();
  options.token = std::move(given->token);
  options.tls = std::move(given->tls);
  if (options.token && !options.token->is_long()) log::warning("{}", secure::kShortToken);
  // A token that nobody asked for leaves MASTER_ADDR as it is.
  const bool in_files = options.certificate.any() || (elsewhere && !options.token_file.empty() &&
                                                      options.token_file != secure::kNoTokenFile);
  launcher::choose_worker_store(options, in_files || (options.token && !options.token_is_made));
  return Done{};
}

int run(drun::launcher::Options& options, FoundTokens found) {
  using namespace drun;
  if (!options.inferred.empty()) log::info("{}", options.inferred);
  for (const auto& note : options.notes)
    log::warning("{}", note);
  const auto taken = use_token(options, std::move(found));
  const bool elsewhere = options.start || !options.instead.empty();
  if (!taken) {
    const int code = secure::is_users(taken.error()) ? kUsageError : kDrunFailed;
    return options.dry_run || elsewhere ? fail(options, code, taken.error().what())
                                        : end_early(options, code, taken.error().what());
  }
  if (!options.instead.empty()) return become(options);
  if (options.start)
    return options.dry_run ? print(launcher::dry_run(options)) : start_all(options);
  // Of several machines each finds it out when its workers start, so that all hear of it.
  const bool one_machine = options.local_nodes > 0 || options.max_nodes == 1;
  launcher::FirstLook look;
  if (one_machine || options.dry_run)
    look = launcher::look_at_program(options, options.nproc_per_node);
  if (!look.warning.empty()) log::warning("{}", look.warning);
  if (options.dry_run) {
    if (look.error) log::warning("here workers would not start: cannot {}", look.error->text());
    return print(launcher::dry_run(options));
  }
  if (look.error)
    return end_early(options, look.error->exit_code(), "cannot " + look.error->text());
  if (!options.exclude_file.empty()) {
    auto hosts = launcher::ask_excluded_hosts(options.exclude_file);
    if (!hosts) return end_early(options, kUsageError, hosts.error().what());
    options.excluded_hosts = std::move(*hosts);
  }
  return start_all(options);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace drun;
  launcher::hosts::WordMarks marks;
  try {
    open_standard_streams();
    FoundTokens found{secure::take_token(::environ),
                      secure::take_token(::environ, secure::kMadeTokenVariable)};
    if (argc == 2 && argv[1] == launcher::hosts::kRemoteEndFlag) return launcher::run_remote_end();
    if (argc == 2 && argv[1] == launcher::kStackHelperFlag) return launcher::run_stack_helper();
    if (argc == 2 && argv[1] == launcher::kGpuHelperFlag) return launcher::run_gpu_helper();
    if (argc == 2 && argv[1] == launcher::kGpuUsageFlag) return launcher::run_gpu_usage_helper();
    std::vector<std::string> environment = own_environment();
    marks = launcher::hosts::take_word_marks(environment);
    auto parsed = launcher::parse_options({argv, argv + argc}, environment);
    if (!parsed.options) {
      if (parsed.exit_code == 0) return print(parsed.text);
      say(marks, stamped(marks, parsed.timestamps, parsed.text));
      launcher::report_early(parsed.report_file, parsed.exit_code, parsed.mistake);
      return parsed.exit_code;
    }
    auto& options = *parsed.options;
    options.output.own_words = marks;
    const bool in_group = options.replica_groups > 0 && !launcher::starts_groups(options);
    launcher::configure_log(
        options, in_group ? "drun group " + std::to_string(options.replica_group) : "drun");
    const bool times = options.output.timestamps;
    if (times || marks != launcher::hosts::WordMarks())
      log::redirect(
          [&marks, times](const std::string& line) { say(marks, stamped(marks, times, line)); });
    if (marks != launcher::hosts::WordMarks() && options.endpoint_flag == "--rdzv-endpoint")
      options.endpoint_flag +=
          ", or the first host of -H, where the nodes meet without it: all hosts need a name or an "
          "address of it that they know";
    options.quit_ignored = launcher::ignored_from_start(SIGQUIT);
    try {
      return run(options, std::move(found));
    } catch (const std::exception& error) {
      return fail(options, kDrunFailed, error.what());
    }
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return drun::kDrunFailed;
  }
}
