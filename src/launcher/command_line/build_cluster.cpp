// --cluster: what the scheduler that started this process knows becomes settings, below all flags
// and variables of drun's own.
#include <utility>

#include "base/environment_variable.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"
#include "launcher/cluster/cluster.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/rdzv_conf.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

bool is_given(const cli::GivenFlags& flags, std::string_view name) {
  const cli::Setting* setting = flags.find(name);
  return setting != nullptr && !setting->value.empty();
}

// A launcher's worker inherits the variables of the scheduler, and is none of its tasks.
bool in_a_worker(const std::vector<std::string>& environment) {
  return environment_variable(environment, "DRUN_ROUND") ||
         environment_variable(environment, "TORCHELASTIC_RUN_ID");
}

// What the user has said himself.
struct Said {
  bool alone = false;  // this node is the job
  bool nodes = false;
  bool place = false;
  bool rank = false;
  bool id = false;
  int min_nodes = 1;
};

Said what_is_said(const cli::GivenFlags& flags) {
  Said said;
  const cli::Setting* nodes = flags.find("nnodes");
  said.nodes = nodes != nullptr;
  int max_nodes = 0;
  if (nodes != nullptr) {
    const NodeNumbers numbers = parse_nodes(*nodes);
    said.min_nodes = numbers.least;
    max_nodes = numbers.most;
  }
  said.alone = flags.on("standalone") || flags.find("local-nodes") != nullptr ||
               is_private(flags) || (max_nodes == 1 && replica_groups(flags) == 0);
  said.place = is_given(flags, "rdzv-endpoint") || is_given(flags, "master-addr");
  const cli::Setting* conf = flags.find("rdzv-conf");
  said.rank = is_given(flags, "node-rank") || (conf != nullptr && parse_conf(*conf).rank);
  said.id = is_given(flags, "rdzv-id");
  return said;
}

// Present and unreadable: what follows from a guess is a job of one node on each of them.
void require(const cluster::Place& place, const cluster::Value& value, const std::string& flag) {
  if (value.problem.empty()) return;
  throw cli::UsageError(std::string(place.scheduler) + ": " + value.problem + "; give " + flag +
                        ", or --cluster none for a job of this node alone");
}

// Its nodes are those of all groups, which have equally many.
void share_nodes(const cli::GivenFlags& flags, cluster::Place& place) {
  const int groups = replica_groups(flags);
  const int nodes = whole_number<int>(place.nodes.text).value_or(0);
  if (nodes <= 1) return;  // all groups are on this one
  if (nodes % groups != 0)
    refuse(*flags.find("replica-groups"),
           std::string(place.scheduler) + " has " + place.nodes.text + " nodes for this job (" +
               place.nodes.from + "), which do not make " + std::to_string(groups) +
               " groups of the same size; --nnodes says how many each group has");
  place.nodes.text = std::to_string(nodes / groups);
}

// Hydra and Flux list no hosts, but pass on a word from one task to all.
void ask_rank_zero(const Host& host, cluster::Place& place) {
  if (!place.pmi_fd || !host.by_pmi || !place.rank.problem.empty()) return;
  const auto answer = host.by_pmi(*place.pmi_fd, place.rank.text == "0", place.pmi_host);
  if (!answer) {
    place.endpoint.problem = answer.error().what();
    return;
  }
  place.endpoint = {cluster::endpoint_of(answer->text, answer->space), "PMI_FD", ""};
  place.id = {answer->space, "PMI_FD", ""};
}

class Inference {
 public:
  Inference(cli::GivenFlags& flags, std::string_view scheduler)
      : flags_(flags), line_(std::string(scheduler) + ":") {}

  // `words` of the line, with the value between them.
  void set(std::string_view flag, const cluster::Value& value, std::string_view before,
           std::string_view after = "") {
    flags_.set({drun_program(false).find(flag), cli::Source::Inferred, value.from, value.text});
    line_ += (any_ ? ", " : " ") + std::string(before) + value.text + std::string(after) + " (" +
             value.from + ")";
    any_ = true;
  }
  [[nodiscard]] std::string line() const { return any_ ? line_ : ""; }

 private:
  cli::GivenFlags& flags_;
  std::string line_;
  bool any_ = false;
};

}  // namespace

Inferred infer_place(cli::GivenFlags& flags, const std::vector<std::string>& environment,
                     const Host& host) {
  const cli::Setting* choice = flags.find("cluster");
  const std::string which = choice != nullptr ? choice->value : "auto";
  if (choice != nullptr) (void)parse_choice(*choice);
  const Said said = what_is_said(flags);
  if (which == "none" || said.alone) return {};
  const bool named = which != "auto";
  if (!named && ((said.nodes && said.place) || in_a_worker(environment))) return {};
  auto place = cluster::find_place(
      which,
      {environment, host.read_file, host.host_name ? host.host_name() : "", said.nodes, named});
  if (!place) {
    if (named) refuse(*choice, "nothing in the environment tells of it");
    return {};
  }
  if (!place->refusal.empty())
    throw cli::UsageError(place->refusal + "; --nnodes 1 is a job of this one alone");
  Inferred result;
  if (!place->note.empty()) result.notes.push_back(place->note);
  if (!said.nodes) require(*place, place->nodes, "--nnodes");
  const bool one = place->nodes.text == "1";
  if (one && !said.nodes) return result;
  if (one && !said.place && said.min_nodes > 1)
    refuse(*flags.find("nnodes"), std::string(place->scheduler) + " has one node for this job (" +
                                      place->nodes.from +
                                      "); to meet others, give --rdzv-endpoint");
  Inference inference(flags, place->scheduler);
  const bool in_groups = replica_groups(flags) > 0;
  if (!said.nodes && in_groups) share_nodes(flags, *place);
  if (!said.nodes)
    inference.set("nnodes", place->nodes, "", in_groups ? " nodes in each group" : " nodes");
  if (!said.place) {
    ask_rank_zero(host, *place);
    require(*place, place->endpoint, "--rdzv-endpoint");
  }
  if (!said.rank && !said.place) require(*place, place->rank, "--node-rank");
  if (!said.rank && place->rank.problem.empty())
    inference.set("node-rank", place->rank, "this is node ");
  if (!said.place) inference.set("rdzv-endpoint", place->endpoint, "meeting at ");
  if (!said.id && !place->id.text.empty()) inference.set("rdzv-id", place->id, "job ");
  result.line = inference.line();
  return result;
}

}  // namespace drun::launcher
