// What a JobView says, as text.
#include <string.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/folded_names.hpp"
#include "base/printable.hpp"
#include "base/utc_text.hpp"
#include "jobs/history_view.hpp"
#include "jobs/job_view.hpp"
#include "rendezvous/messages.hpp"

namespace drun::jobs {
namespace {

using rendezvous::Phase;
using rendezvous::RoundDocument;

constexpr std::size_t kMostGroups = 12;  // of hosts in a line
constexpr std::size_t kMostStops = 3;    // of rounds before
constexpr std::size_t kMostNotes = 8;    // lines of single nodes
constexpr std::size_t kLongestNote = 300;
constexpr std::string_view kMissing = "missing";  // a state of AbsentNode

// Of a job that has ended: the round's document is without them then.
std::string last_round(const JobView& job) {
  if (job.history.rounds.empty()) return "";
  const rendezvous::PastRound& round = job.history.rounds.back();
  return ", round " + std::to_string(round.number) + ": " + counted(round.nodes, "node") + ", " +
         counted(round.world_size, "rank");
}

std::string head(const JobView& job) {
  std::string text = "job " + escaped(job.id) + ": " + std::string(name_of(job.state));
  if (job.outcome) {
    text += ", exit code " + std::to_string(job.outcome->exit_code) + last_round(job);
  } else if (rendezvous::is_alive(job.round.phase) && job.state != JobState::Abandoned) {
    text += ", round " + std::to_string(job.round.number) + ": " +
            counted(job.round.nodes, "node") + ", " + counted(job.round.world_size, "rank");
  } else if (!job.nnodes.empty()) {
    text += ", --nnodes " + escaped(job.nnodes);
  }
  return text + "\n";
}

std::string line(std::string_view name, const std::string& text) {
  std::string result = "  " + std::string(name) + ": ";
  return result + text + "\n";
}

template <typename Node>
std::string host_of(const Node& node) {
  return escaped(node.host.substr(0, rendezvous::kMaxName));
}

// "2026-11-28 14:31:01 UTC, 61.5 s after its workers were started first". Empty: nobody knows.
std::string ended_text(const JobView& job) {
  const auto& rounds = job.history.rounds;
  if (!job.outcome || rounds.empty() || rounds.back().ended_ms == 0) return "";
  std::string text = utc_clock_text(rounds.back().ended_ms, true);
  if (rounds.front().number == 1 && rounds.front().began_ms > 0)
    text += ", " + describe_duration(rounds.back().ended_ms - rounds.front().began_ms) +
            " after its first round began";
  return text;
}

// "steps 41 to 57; rank 5 on node1 is furthest behind: step 41, 3.0 s ago". Empty: there is nothing
// to say.
std::string beats_text(const JobView& job, std::int64_t now_ms) {
  if (job.beats.empty()) return {};
  const Progress progress = progress_of(job.beats, now_ms);
  const std::string least = std::to_string(progress.least_step);
  const std::string most = std::to_string(progress.most_step);
  std::string text = progress.least_step < 0 ? ""
                     : least == most         ? "step " + least
                                             : "steps " + least + " to " + most;
  if (!progress.behind) return text;
  const BeatView& behind = *progress.behind;
  return text + (text.empty() ? "" : "; ") + "rank " + std::to_string(behind.rank) + " on " +
         host_of(behind) + " " +
         behind_text(behind.step, std::max<std::int64_t>(now_ms - behind.time_ms, 0));
}

// Where the store is and who leads, unless one does both and is alone.
std::string offices(const JobView& job) {
  std::string text;
  if (job.nnodes == "1") return text;
  for (const NodeView& node : job.nodes) {
    if (node.hosts) text += line("store", host_of(node));
    if (node.leads && (!node.hosts || job.nodes.size() > 1)) text += line("leader", host_of(node));
  }
  return text;
}

// They come in order.
void append(std::vector<NumberRange>& ranges, NumberRange range) {
  if (!ranges.empty() && ranges.back().last + 1 == range.first)
    ranges.back().last = range.last;
  else
    ranges.push_back(range);
}

// "rank 3", "ranks 0-31"; of very many the first ones.
std::string short_text(std::vector<NumberRange> ranks) {
  const bool cut = ranks.size() > kMostGroups;
  if (cut) ranks.resize(kMostGroups);
  return ranks_text(ranks) + (cut ? ", ..." : "");
}

std::string in_brackets(const std::vector<NumberRange>& ranks) {
  return ranks.empty() ? "" : " (" + short_text(ranks) + ")";
}

// "node[1-3] (ranks 0-11), node0 (ranks 12-15)": one sees whose the ranks are, also where hosts and
// ranks are not in the same order.
class HostsWithRanks {
 public:
  // By group rank.
  void add(const NodeView& node) {
    std::string host = host_of(node);
    if (runs_.empty() ||
        (node.ranks && ::strverscmp(host.c_str(), runs_.back().hosts.back().c_str()) < 0))
      runs_.emplace_back();
    runs_.back().hosts.push_back(std::move(host));
    if (node.ranks) append(runs_.back().ranks, *node.ranks);
  }

  [[nodiscard]] std::string text() const {
    if (runs_.size() > kMostGroups) return text_of_all();
    std::string text;
    for (const Run& run : runs_)
      text += (text.empty() ? "" : ", ") + text_of(run) + in_brackets(run.ranks);
    return text;
  }

 private:
  struct Run {
    std::vector<std::string> hosts;
    std::vector<NumberRange> ranks;
  };

  static std::string text_of(const Run& run) {
    return folded_names({run.hosts.begin(), run.hosts.end()}, kMostGroups);
  }
  [[nodiscard]] std::string text_of_all() const {
    Run all;
    for (const Run& run : runs_) {
      all.hosts.insert(all.hosts.end(), run.hosts.begin(), run.hosts.end());
      for (const NumberRange& ranks : run.ranks)
        append(all.ranks, ranks);
    }
    return text_of(all) + " (" + short_text(all.ranks) + ", not in the order of the hosts)";
  }

  std::vector<Run> runs_;
};

// "running: node[0-3] (ranks 0-31)"
std::string groups(const JobView& job) {
  std::vector<std::string_view> states;
  for (const NodeView& node : job.nodes)
    if (std::find(states.begin(), states.end(), node.state) == states.end())
      states.push_back(node.state);
  std::string text;
  for (const std::string_view state : states) {
    HostsWithRanks hosts;
    for (const NodeView& node : job.nodes)
      if (node.state == state) hosts.add(node);
    text += line(state, hosts.text());
  }
  return text;
}

// "missing: node3 (ranks 24-31)", "lost: node[7-8]"; without a name, "missing: group rank 3".
std::string absent_groups(const JobView& job) {
  std::string text;
  std::vector<NumberRange> places;
  std::vector<NumberRange> ranks;
  std::map<std::string, std::vector<std::string>> hosts;  // by state
  for (const AbsentNode& node : job.absent) {
    // Whom a job still waits for is said by what waits.
    if (node.group_rank && node.host.empty() && job.round.phase != Phase::Gathering)
      append(places, {*node.group_rank, *node.group_rank});
    if (node.ranks) append(ranks, *node.ranks);
    if (!node.host.empty()) hosts[node.state].push_back(host_of(node));
  }
  const std::string unnamed = places.empty() ? "" : "group " + short_text(places);
  if (!unnamed.empty()) hosts.try_emplace(std::string(kMissing));
  for (const auto& [state, names] : hosts) {
    std::string nodes = folded_names({names.begin(), names.end()}, kMostGroups);
    if (state == kMissing) {
      nodes += (names.empty() || unnamed.empty() ? "" : ", ") + unnamed + in_brackets(ranks);
    }
    text += line(state, nodes);
  }
  return text;
}

// Those whose agents keep silent for so long that they may soon be lost: "node[3,7]: no word for up
// to 12.3 s, lost after 15.0 s".
std::string silent(const JobView& job) {
  std::vector<std::string> hosts;
  std::optional<LastWord> worst;
  for (const NodeView& node : job.nodes) {
    if (!node.word || node.word->age_ms * 2 <= node.word->lease_ms) continue;
    hosts.push_back(host_of(node));
    if (!worst || node.word->age_ms > worst->age_ms) worst = node.word;
  }
  if (!worst) return "";
  return line("silent", folded_names({hosts.begin(), hosts.end()}, kMostGroups) + ": no word for " +
                            (hosts.size() > 1 ? "up to " : "") + describe_duration(worst->age_ms) +
                            ", lost after " + describe_duration(worst->lease_ms));
}

std::string usage(const JobView& job) {
  std::string text;
  const int ranks = job.round.world_size;
  for (const std::string& each :
       usage_table(job.usage, ranks > 0 ? static_cast<std::size_t>(ranks) : 0))
    text += "  " + each + "\n";
  return text;
}

std::string notes(const JobView& job) {
  std::string text;
  std::size_t shown = 0;
  std::size_t more = 0;
  const auto add = [&](const auto& node) {
    if (node.note.empty() || node.host.empty() || node.state == "missing") return;
    if (shown++ < kMostNotes)
      text += line(host_of(node), escaped(node.note.substr(0, kLongestNote)));
    else
      ++more;
  };
  std::for_each(job.nodes.begin(), job.nodes.end(), add);
  std::for_each(job.absent.begin(), job.absent.end(), add);
  if (more > 0) text += "  and " + counted(more, "other") + "\n";
  return text;
}

}  // namespace

std::string behind_text(std::int64_t step, std::int64_t age_ms) {
  return "is furthest behind: " + (step >= 0 ? "step " + std::to_string(step) + ", " : "") +
         describe_duration(age_ms) + " ago";
}

std::string text_of(const JobView& job, std::int64_t now_ms) {
  std::string text = head(job);
  const RoundDocument& round = job.round;
  if (job.outcome && !job.outcome->text.empty())
    text += line("end", escaped(job.outcome->text.substr(0, kLongestNote)));
  if (const std::string ended = ended_text(job); !ended.empty()) text += line("ended", ended);
  if (round.restart_count > 0 || job.max_restarts > 0)
    text += line("restarts",
                 std::to_string(round.restart_count) + " of " + std::to_string(job.max_restarts));
  text += stops_text(job, kMostStops);
  if (round.losses > 0) text += line("nodes lost", counted(round.losses, "round"));
  if (job.outcome || job.state == JobState::Abandoned) return text;
  if (round.since_ms > 0 && now_ms > 0)
    text += line("since", utc_clock_text(round.since_ms, true) + " (" +
                              describe_duration(now_ms - round.since_ms) + ", " +
                              std::string(name_of(round.phase)) + ")");
  if (round.hung && round.phase == Phase::Running)
    text += line("hangs", "no rank makes progress any more");
  if (const std::string beats = now_ms > 0 ? beats_text(job, now_ms) : ""; !beats.empty())
    text += line("heartbeats", beats);
  if (!job.collective.empty())
    text += line("NCCL", escaped(job.collective.substr(0, kLongestNote)));
  if (!round.waiting.empty() && !rendezvous::is_alive(round.phase))
    text += line("waits", escaped(round.waiting.substr(0, kLongestNote)));
  if (!round.reason.empty() && (round.phase == Phase::Stopping || job.history.rounds.empty()))
    text += line(round.phase == Phase::Stopping ? "stops" : "last stop",
                 escaped(round.reason.substr(0, kLongestNote)));
  return text + offices(job) + groups(job) + absent_groups(job) + silent(job) + notes(job) +
         usage(job);
}

}  // namespace drun::jobs
