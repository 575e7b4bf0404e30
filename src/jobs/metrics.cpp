#include "jobs/metrics.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/printable.hpp"

namespace drun::jobs {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// A label's value between its quotes.
std::string label_value(std::string_view value) {
  std::string text = "\"";
  for (const char c : printable(value)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

enum class Kind { Gauge, Counter, Info };

class Writer {
 public:
  Writer(MetricsFormat format, std::string run_id)
      : open_(format == MetricsFormat::OpenMetrics), run_id_(std::move(run_id)) {}

  // `name` without what its kind puts behind it.
  void family(std::string_view name, Kind kind, std::string_view help) {
    name_ = name;
    suffix_ = kind == Kind::Counter ? "_total" : kind == Kind::Info ? "_info" : "";
    // The older format has no information, and names a counter as its samples are.
    const std::string shown = name_ + (open_ ? "" : suffix_);
    const std::string_view type = kind == Kind::Counter         ? "counter"
                                  : kind == Kind::Info && open_ ? "info"
                                                                : "gauge";
    text_ += "# TYPE " + shown + " " + std::string(type) + "\n# HELP " + shown + " " +
             std::string(help) + "\n";
  }
  void sample(const Labels& labels, std::int64_t value) {
    text_ += name_ + suffix_ + "{run_id=" + label_value(run_id_);
    for (const auto& [name, label] : labels)
      text_ += "," + std::string(name) + "=" + label_value(label);
    text_ += "} " + std::to_string(value) + "\n";
  }
  void single(std::string_view name, Kind kind, std::string_view help, std::int64_t value) {
    family(name, kind, help);
    sample({}, value);
  }
  [[nodiscard]] std::string take() { return std::move(text_) + (open_ ? "# EOF\n" : ""); }

 private:
  const bool open_;
  const std::string run_id_;
  std::string name_;
  std::string suffix_;
  std::string text_;
};

// Nodes of a state that nobody is in count as well: a series that comes and goes is hard to use.
std::map<std::string, std::pair<int, int>> by_state(const JobView& job) {
  std::map<std::string, std::pair<int, int>> result;
  for (const char* state :
       {"failed", "leaving", "lost", "missing", "preparing", "refused", "running", "set-aside",
        "spare", "stopped", "stopping", "succeeded", "unknown", "waiting"})
    (void)result[state];
  const auto count = [&result](const auto& node) {
    auto& [nodes, ranks] = result[node.state];
    ++nodes;
    if (node.ranks) ranks += node.ranks->last - node.ranks->first + 1;
  };
  std::for_each(job.nodes.begin(), job.nodes.end(), count);
  std::for_each(job.absent.begin(), job.absent.end(), count);
  return result;
}

void write_job(Writer& writer, const JobView& job) {
  using enum JobState;
  writer.family("drun_job", Kind::Info, "The job.");
  writer.sample({{"nnodes", job.nnodes}}, 1);
  writer.family("drun_job_state", Kind::Gauge, "1 for the state that the job is in.");
  for (const JobState state : {Running, Gathering, Stopping, Succeeded, Failed, Abandoned})
    writer.sample({{"state", std::string(name_of(state))}}, state == job.state ? 1 : 0);
  writer.single("drun_job_round", Kind::Gauge,
                "Number of the round that runs or is prepared; each restart is a new one.",
                job.round.number);
  writer.single("drun_job_world_size", Kind::Gauge, "Ranks of the round.", job.round.world_size);
  writer.single("drun_job_restarts", Kind::Counter, "Restarts that were spent.",
                job.round.restart_count);
  writer.single("drun_job_restarts_allowed", Kind::Gauge, "What --max-restarts allows.",
                job.max_restarts);
  writer.single("drun_job_node_losses", Kind::Counter, "Rounds that ended because a node was lost.",
                job.round.losses);
  writer.single("drun_job_hung", Kind::Gauge,
                "1 if no rank makes progress any more (--hang-timeout).",
                job.round.hung && job.round.phase == rendezvous::Phase::Running ? 1 : 0);
  if (job.outcome)
    writer.single("drun_job_exit_code", Kind::Gauge, "Exit code of the job, which has ended.",
                  job.outcome->exit_code);
  const auto states = by_state(job);
  writer.family("drun_job_nodes", Kind::Gauge, "Nodes by state.");
  for (const auto& [state, count] : states)
    writer.sample({{"state", state}}, count.first);
  writer.family("drun_job_ranks", Kind::Gauge, "Ranks by the state of their node.");
  for (const auto& [state, count] : states)
    writer.sample({{"state", state}}, count.second);
}

void write_ranks(Writer& writer, const JobView& job) {
  writer.family("drun_rank_state", Kind::Gauge, "1 for the state of the node that has this rank.");
  for (const NodeView& node : job.nodes) {
    if (!node.ranks) continue;
    for (int rank = node.ranks->first; rank <= node.ranks->last; ++rank)
      writer.sample({{"rank", std::to_string(rank)}, {"host", node.host}, {"state", node.state}},
                    1);
  }
}

}  // namespace

std::string content_type(MetricsFormat format) {
  return format == MetricsFormat::OpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_text(const AgentMetrics& agent, const JobView* job, bool ranks,
                         MetricsFormat format) {
  Writer writer(format, agent.run_id);
  if (job != nullptr) write_job(writer, *job);
  writer.family("drun_agent", Kind::Info, "The agent that gives these metrics.");
  writer.sample({{"host", agent.host}, {"phase", agent.phase}}, 1);
  writer.single("drun_agent_ready", Kind::Gauge, "1 if the workers of the agent's node run.",
                agent.ready ? 1 : 0);
  writer.single("drun_agent_workers", Kind::Gauge, "Workers of the agent's node in the round.",
                agent.workers);
  if (ranks && job != nullptr) write_ranks(writer, *job);
  return writer.take();
}

}  // namespace drun::jobs
