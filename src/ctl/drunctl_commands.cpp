#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl.hpp"
#include "ctl/drunctl_doctor.hpp"
#include "ctl/drunctl_health.hpp"
#include "ctl/drunctl_jobs.hpp"
#include "ctl/drunctl_stacks.hpp"
#include "ctl/drunctl_status.hpp"
#include "ctl/drunctl_timeline.hpp"
#include "ctl/job_key.hpp"
#include "ctl/key_commands.hpp"
#include "ctl/listings.hpp"
#include "ctl/running_command.hpp"
#include "drun/store/errors.hpp"
#include "hang/heartbeat_file.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using store::Errc;

int ping(const RunningCommand& command) {
  auto client = command.connect_there();
  if (!client) return unreachable(client.error());
  const auto start = Clock::now();
  // Every store knows this one; a ping proper is newer than some.
  const auto answer = client->num_keys(command.left());
  if (!answer) return failed(answer.error());
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  const std::string endpoint = to_string(command.options().endpoint);
  print(command.options().json
            ? json_object({{"endpoint", endpoint}}, {{"microseconds", took.count()}})
            : endpoint + " answers in " + std::to_string(took.count()) + " us\n");
  return kOk;
}

int stats(const RunningCommand& command) {
  auto query = command.connect_control_there();
  if (!query) return unreachable(query.error());
  const auto request = query->send(control::Stats{}, command.deadline());
  if (!request) return failed(request.error());
  const auto reply = query->receive(*request, command.deadline());
  if (!reply) return failed(reply.error());
  const auto* counters = std::get_if<control::Counters>(&*reply);
  if (counters == nullptr) return failed(Error(Errc::Malformed, "an unexpected answer to stats"));
  print(counter_lines(*counters, command.options().json));
  return kOk;
}

int jobs(const RunningCommand& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const auto found = read_documents(*query, std::string(rendezvous::kAllJobs), command.deadline());
  if (!found) return failed(found.error());
  print(job_lines(found->documents, command.options().json));
  return kOk;
}

int delete_ended_job(const RunningCommand& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const auto deletion = delete_job(*query, command.word(0), command.deadline());
  if (!deletion) return failed(deletion.error());
  if (*deletion == Deletion::NoSuchJob) log::error("there is no job '{}'", command.word(0));
  if (*deletion == Deletion::HasAgents)
    log::error("the job '{}' has agents: it can be deleted when they have gone", command.word(0));
  return *deletion == Deletion::Done ? kOk : kNo;
}

constexpr std::chrono::milliseconds kHealthTimeout{5'000};

int health_of_host(const RunningCommand& command) {
  const CtlOptions& options = command.options();
  return health(options, command.start() + options.timeout.value_or(kHealthTimeout));
}

int status_of_jobs(const RunningCommand& command) {
  return status(command.options(), command.deadline());
}

constexpr std::chrono::milliseconds kDoctorTimeout{120'000};

int doctor_of_nodes(const RunningCommand& command) {
  const CtlOptions& options = command.options();
  return doctor(options, command.start() + options.timeout.value_or(kDoctorTimeout));
}

int print_page_key(const RunningCommand& command) {
  return page_key(command.options(), command.deadline());
}

int print_job_token(const RunningCommand& command) {
  return job_token(command.options());
}

int stacks_of_jobs(const RunningCommand& command) {
  return stacks(command.options(), command.deadline());
}

int timeline_of_files(const RunningCommand& command) {
  return draw_timeline(command.options());
}

int heartbeat(const RunningCommand& command) {
  const std::string& file = command.options().heartbeat_file;
  const std::string text = command.words().empty() ? "" : command.word(0);
  if (!text.empty() && text != hang::kLastHeartbeat) (void)command.number(0);
  if (file.empty()) {
    log::error(
        "{} is not set: this is for programs that drun has started (--log-dir /dev/null "
        "leaves them no file)",
        hang::kHeartbeatVariable);
    return kUsageError;
  }
  const Status written = hang::write_heartbeat(file, text);
  if (written) return kOk;
  log::error("{}", written.error().what());
  return kDrunFailed;
}

struct Verb {
  std::size_t fewest;
  std::size_t most;
  int (*run)(const RunningCommand&);
};

constexpr std::size_t kAny = SIZE_MAX;

const std::map<std::string, Verb>& verbs() {
  static const std::map<std::string, Verb> kVerbs = {
      {"get", {1, 1, get}},
      {"set", {1, 2, set}},
      {"add", {1, 2, add}},
      {"compare-set", {3, 3, compare_set}},
      {"check", {1, kAny, check}},
      {"wait", {1, kAny, wait}},
      {"barrier", {2, 2, barrier}},
      {"delete", {1, 1, delete_key}},
      {"keys", {0, 1, keys}},
      {"watch", {0, 1, watch}},
      {"heartbeat", {0, 1, heartbeat}},
      {"stats", {0, 0, stats}},
      {"ping", {0, 0, ping}},
      {"jobs", {0, 0, jobs}},
      {"delete-job", {1, 1, delete_ended_job}},
      {"health", {0, 1, health_of_host}},
      {"status", {0, 1, status_of_jobs}},
      {"doctor", {0, kAny, doctor_of_nodes}},
      {"history", {0, 1, status_of_jobs}},
      {"page-key", {0, 1, print_page_key}},
      {"job-token", {1, 1, print_job_token}},
      {"stacks", {0, 1, stacks_of_jobs}},
      {"timeline", {1, kAny, timeline_of_files}},
  };
  return kVerbs;
}

}  // namespace

bool asks_a_store(const CtlOptions& options) {
  constexpr std::array<std::string_view, 4> kOthers{"doctor", "health", "heartbeat", "timeline"};
  return std::find(kOthers.begin(), kOthers.end(), options.command) == kOthers.end();
}

int run(const CtlOptions& options) {
  const auto verb = verbs().find(options.command);
  if (verb == verbs().end()) {
    throw cli::UsageError("there is no command '" + escaped(options.command) + "'; see --help");
  }
  if (options.words.size() < verb->second.fewest || options.words.size() > verb->second.most) {
    throw cli::UsageError("expected: drunctl " + usage_of(options.command));
  }
  if (!options.endpoint_given || !asks_a_store(options) || options.tls != nullptr ||
      !options.token_file.empty())
    return verb->second.run(RunningCommand(options));
  CtlOptions own = options;
  const auto limit =
      std::chrono::steady_clock::now() + options.timeout.value_or(RunningCommand::kDefaultTimeout);
  own.tls = made_key_at(options.endpoint, limit);
  return verb->second.run(RunningCommand(own));
}

}  // namespace drun::ctl
