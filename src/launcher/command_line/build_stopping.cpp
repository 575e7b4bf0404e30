// When and how a job ends: signals, limits of time, exit codes, and which failures are worth
// another try.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment_variable.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"
#include "launcher/cluster/cluster.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

cli::Setting given_or_default(const cli::GivenFlags& flags, std::string_view name) {
  if (const cli::Setting* setting = flags.find(name)) return *setting;
  const cli::Flag* const flag = drun_program(false).find(name);
  return {flag, cli::Source::Default, "--" + std::string(name), std::string(flag->fallback)};
}

void build_heartbeats(const cli::GivenFlags& flags, Options& options) {
  const auto take = [&](std::string_view name, std::optional<std::chrono::milliseconds>& limit) {
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr) return;
    const cli::Setting* log_dir = flags.find("log-dir");
    if (log_dir != nullptr && log_dir->value == "/dev/null")
      refuse(*setting, "with --log-dir /dev/null the workers have no file for heartbeats");
    limit = parse_duration(*setting, false);
  };
  take("heartbeat-timeout", options.heartbeats.next);
  take("heartbeat-start-timeout", options.heartbeats.first);
  take("heartbeat-end-timeout", options.heartbeats.last);
}

void build_hangs(const cli::GivenFlags& flags, Options& options) {
  constexpr std::chrono::milliseconds kLeast{1'000};
  const cli::Setting* timeout = flags.find("hang-timeout");
  if (timeout != nullptr) {
    options.hang_timeout = parse_duration(*timeout, false);
    if (*options.hang_timeout < kLeast) refuse(*timeout, "at least a second");
  }
  const cli::Setting* action = flags.find("on-hang");
  if (action == nullptr) return;
  options.on_hang =
      std::array{OnHang::Restart, OnHang::Stop, OnHang::Report}.at(parse_choice(*action));
  if (!options.looks_for_hangs() && options.on_hang != OnHang::Restart)
    refuse(*action,
           "nobody looks for hangs without --hang-timeout or a limit for heartbeats "
           "(--heartbeat-timeout)");
}

// As it is called in /dev/shm, or by shm_open(3).
std::string parse_shm_pattern(const cli::Setting& setting, std::string_view pattern) {
  for (const std::string_view folder : {"/dev/shm/", "/"}) {
    if (!pattern.starts_with(folder)) continue;
    pattern.remove_prefix(folder.size());
    break;
  }
  // No such name has a comma: it would be a list, and keep nothing.
  if (pattern.find(',') != pattern.npos)
    refuse(setting, "one pattern; give the flag once for each");
  if (pattern.empty() || pattern.find('/') != pattern.npos)
    refuse(setting, "expected a name in /dev/shm, or a pattern such as 'psm_*'");
  return std::string(pattern);
}

// When the job ends, if that is known; and whom that must be told.
void build_job_end(const cli::GivenFlags& flags, Options& options) {
  const cluster::Value end = cluster::find_job_end(options.inherited);
  if (end.problem.empty() && !end.text.empty())
    options.job_end = whole_number<std::int64_t>(end.text);
  const cli::Setting* setting = flags.find("warn-before");
  if (setting == nullptr) return;
  options.warn_before = parse_end_notice(*setting);
  if (!end.problem.empty()) refuse(*setting, end.problem);
  if (!options.job_end && !options.timeout)
    refuse(*setting,
           "nothing says when the job ends: give --timeout, or set DRUN_JOB_END_TIME to a time in "
           "Unix seconds (Slurm before 23.02, PBS and LSF tell none)");
  if (options.timeout && *options.timeout <= options.warn_before->before)
    refuse(*setting, "--timeout is not longer than that");
}

}  // namespace

void build_stopping(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting handled = given_or_default(flags, "signals-to-handle");
  options.signals_to_handle = parse_signals(handled);
  options.signals_to_handle_text = handled.value;
  options.quit_stops = std::find(options.signals_to_handle.begin(), options.signals_to_handle.end(),
                                 SIGQUIT) != options.signals_to_handle.end();
  // Workers are told what torchrun tells them.
  if (handled.source == cli::Source::Default) options.signals_to_handle_text += ",SIGQUIT";

  if (const cli::Setting* setting = flags.find("shutdown-timeout")) {
    options.shutdown_timeout = parse_duration(*setting, true);
  }
  if (const cli::Setting* setting = flags.find("stop-signal")) {
    options.stop_signal = parse_stop_signal(*setting);
  }
  const cli::Setting forwarded = given_or_default(flags, "forward-signals");
  options.forward_signals = parse_signals(forwarded);
  const std::vector<int> stopping = options.signals_to_handle;
  for (const int signal : stopping) {
    auto& forward = options.forward_signals;
    if (std::find(forward.begin(), forward.end(), signal) == forward.end()) continue;
    const bool chosen = handled.source != cli::Source::Default;
    if (chosen && forwarded.source != cli::Source::Default)
      refuse(forwarded, process::signal_name(signal) + " is in --signals-to-handle too");
    std::erase(chosen ? forward : options.signals_to_handle, signal);
  }
  if (const cli::Setting* setting = flags.find("exit-code-from")) {
    options.exit_code = parse_exit_code_policy(*setting);
  }
  if (const cli::Setting* setting = flags.find("restart-on")) {
    options.restart_on = parse_exit_set(*setting);
  }
  if (const cli::Setting* setting = flags.find("no-restart-on")) {
    options.no_restart_on = parse_exit_set(*setting);
  }
  if (const cli::Setting* setting = flags.find("no-requeue-on")) {
    options.no_requeue_on = parse_exit_set(*setting);
  }
  if (const cli::Setting* setting = flags.find("keep-shm")) {
    std::string_view patterns = setting->value;
    do {
      options.keep_shm.push_back(
          parse_shm_pattern(*setting, take_until(patterns, cli::kBetweenValues)));
    } while (!patterns.empty());
  }
  if (const cli::Setting* setting = flags.find("timeout")) {
    options.timeout = parse_duration(*setting, false);
  }
  if (const cli::Setting* setting = flags.find("start-timeout")) {
    options.start_timeout = parse_duration(*setting, false);
  }
  if (const cli::Setting* setting = flags.find("stacks-on-failure")) {
    options.stacks_after_failure = setting->value != "off";
    options.stacks_limit = options.stacks_after_failure ? parse_duration(*setting, false)
                                                        : std::chrono::milliseconds(0);
  }
  options.file_timers =
      environment_variable(options.inherited, "TORCHELASTIC_ENABLE_FILE_TIMER") == "1";
  build_heartbeats(flags, options);
  build_hangs(flags, options);
  build_job_end(flags, options);
}

}  // namespace drun::launcher
