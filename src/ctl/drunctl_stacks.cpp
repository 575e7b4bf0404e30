#include "ctl/drunctl_stacks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "ctl/drunctl_health.hpp"
#include "ctl/store_look.hpp"
#include "jobs/job_view.hpp"
#include "rendezvous/keys.hpp"
#include "stacks/stack_report.hpp"
#include "stacks/stack_text.hpp"
#include "status/agent_socket.hpp"

namespace drun::ctl {
namespace {

using stacks::StackReport;
using store::ControlQuery;

constexpr std::size_t kLongestReport = 16U << 20;
constexpr std::chrono::milliseconds kStatusLimit{2'000};

// An agent of this host whose workers run.
struct Here {
  std::string socket;
  std::string job;
  bool several = false;  // nodes: one of their agents asks the others
};

struct Answer {
  std::string job;
  Result<StackReport> report;
};

Result<StackReport> report_in(const std::string& answer) {
  constexpr std::string_view kError = "error: ";
  if (answer.starts_with(kError))
    return Error(std::make_error_code(std::errc::io_error),
                 answer.substr(kError.size(), answer.find('\n') - kError.size()));
  return stacks::parse_report(answer);
}

Result<StackReport> ask_stacks(const Here& agent, bool quick, Deadline deadline) {
  using enum status::Question;
  const auto question =
      agent.several ? (quick ? QuickJobStacks : JobStacks) : (quick ? QuickStacks : Stacks);
  const auto answer = status::ask(agent.socket, deadline, question, kLongestReport);
  if (!answer) return answer.error();
  return report_in(*answer);
}

// Those to ask. What keeps one from answering is added to `failures`.
std::vector<Here> agents_here(const std::optional<std::string>& job, Deadline deadline,
                              std::vector<Answer>& failures) {
  std::vector<Here> agents;
  std::set<std::pair<std::string, std::string>> asked;  // job and endpoint
  const auto limit = std::min(deadline, std::chrono::steady_clock::now() + kStatusLimit);
  for (const std::string& socket : status::find_sockets(job)) {
    const auto status =
        ask_status(socket, std::max(limit, std::chrono::steady_clock::now() + kLeastForAgent));
    if (!status) {
      if (!is_gone(status.error())) failures.push_back({"", status.error()});
      continue;
    }
    if (status->round == 0) continue;
    const bool several = !status->endpoint.empty() && status->nodes > 1;
    if (several && !asked.emplace(status->job, status->endpoint).second) continue;
    agents.push_back({socket, status->job, several});
  }
  return agents;
}

// All at once: each takes its time.
std::vector<Answer> ask_all(const std::vector<Here>& agents, bool quick, Deadline deadline) {
  std::vector<Answer> answers;
  for (const Here& agent : agents)
    answers.push_back({agent.job, {}});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < agents.size(); ++i)
    threads.emplace_back([&, i] { answers[i].report = ask_stacks(agents[i], quick, deadline); });
  for (auto& thread : threads)
    thread.join();
  return answers;
}

std::string shown_as(const CtlOptions& options, const std::string& job, const StackReport& report) {
  if (options.collapsed) return collapsed(report);
  if (options.json) return to_json(report, on_terminal(), job) + "\n";
  stacks::TextOptions text;
  text.all = options.all;
  text.shows_all = "--all";
  return "job " + escaped(job) + ": " + text_of(report, text);
}

int stacks_at(const CtlOptions& options, const std::optional<std::string>& job, Deadline deadline) {
  auto query = ControlQuery::open(followed(options.endpoint, deadline, options.tls), deadline,
                                  options.retry, options.tls);
  if (!query) return unreachable(query.error());
  const std::string prefix =
      job ? rendezvous::Keys(*job).prefix : std::string(rendezvous::kAllJobs);
  const auto found = read_documents(*query, prefix, deadline);
  if (!found) return failed(found.error());
  bool any = false;
  for (const jobs::JobView& each : jobs::jobs_in(found->documents)) {
    std::vector<stacks::NodeRanks> nodes;
    for (const jobs::NodeView& node : each.nodes)
      if (node.ranks && node.state != "preparing" && node.state != "stopped")
        nodes.push_back({node.host, *node.ranks});
    if (nodes.empty() || each.outcome) continue;
    any = true;
    const auto report =
        look_through_store(*query, each.id, nodes, each.round.number, options.quick, deadline);
    if (!report) return failed(report.error());
    print(shown_as(options, each.id, *report));
  }
  if (any) return kOk;
  log::error("no job{} with workers is at {}", job ? " '" + escaped(*job) + "'" : "",
             to_string(options.endpoint));
  return kNo;
}

int stacks_of_host(const CtlOptions& options, const std::optional<std::string>& job,
                   Deadline deadline) {
  std::vector<Answer> answers;
  const auto agents = agents_here(job, deadline, answers);
  for (Answer& answer : ask_all(agents, options.quick, deadline))
    answers.push_back(std::move(answer));
  std::map<std::string, std::vector<StackReport>> jobs;
  int code = -1;
  for (const Answer& answer : answers) {
    if (answer.report) {
      jobs[answer.job].push_back(*answer.report);
    } else if (!is_gone(answer.report.error())) {
      log::error("{}", escaped(answer.report.error().what()));
      code = kNo;
    }
  }
  for (const auto& [id, reports] : jobs) {
    print(shown_as(options, id, stacks::fold(reports)));
    code = std::max(code, kOk);
  }
  if (code >= 0) return code;
  log::error("no worker of a drun of this user runs here{}: name the store with --endpoint",
             job ? " with job " + escaped(*job) : "");
  return kNo;
}

}  // namespace

int stacks(const CtlOptions& options, Deadline deadline) {
  const auto job = options.words.empty() ? std::nullopt : std::optional(options.words.front());
  return options.endpoint_given ? stacks_at(options, job, deadline)
                                : stacks_of_host(options, job, deadline);
}

}  // namespace drun::ctl
