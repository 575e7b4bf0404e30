#include "launcher/workers/hung_ranks.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "base/duration_text.hpp"
#include "base/exit_codes.hpp"
#include "base/number_ranges.hpp"
#include "base/printable.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostPlaces = 8;  // in one line

std::string_view call_of(const WaitingRank& rank) {
  const std::string_view call = rank.place.call;
  return call.substr(0, call.find(' '));
}

// What its stack says is less than something else that is known.
bool stack_tells(const WaitingRank& rank) {
  const std::string function = rank.frame.substr(0, rank.frame.find(' '));
  return !rank.frame.empty() && function != call_of(rank) && !rank.behind && !rank.place.stopped &&
         rank.place.child.empty();
}

// In the same collective ranks wait in different system calls.
std::string where(const WaitingRank& rank) {
  if (rank.behind) return "NCCL says that it is behind in a collective";
  if (!stack_tells(rank)) return "it " + rank.place.text();
  if (rank.for_ranks) return "it waits for other ranks in " + printable(rank.frame);
  if (rank.for_gpu) return "it waits for its GPU in " + printable(rank.frame);
  return "it " + rank.place.text() + " in " + printable(rank.frame);
}

rendezvous::HangPlace place_of(const WaitingRank& rank) {
  if (rank.behind || rank.place.stopped || !rank.place.child.empty()) return {};
  return {printable(rank.frame), std::string(call_of(rank))};
}

// Nobody knows its stack, and it waits in the system call of a rank whose stack is known: it may be
// where that one is.
bool may_be_anywhere(const WaitingRank& rank, const std::vector<WaitingRank>& ranks) {
  if (!rank.frame.empty() || rank.behind || rank.place.stopped || !rank.place.child.empty())
    return false;
  return std::any_of(ranks.begin(), ranks.end(), [&](const WaitingRank& other) {
    return !other.frame.empty() && call_of(other) == call_of(rank);
  });
}

std::string cause_of(const WaitingRank& rank, std::chrono::milliseconds timeout) {
  return "hangs: " + where(rank) + ", and no rank of the job has made progress for " +
         describe_duration(timeout.count()) + " (--hang-timeout)";
}

// How many ranks wait where each does; 0: not known. Who is elsewhere by its stack tells more than
// a system call: in a collective of the program's own one rank may accept what the others connect
// to.
std::vector<int> count_alike(const std::vector<WaitingRank>& ranks) {
  const auto by_frame = [](const WaitingRank& rank) {
    return stack_tells(rank) ? rank.frame : where(rank);
  };
  std::map<std::string, int> frames;
  std::map<std::string, int> places;
  for (const WaitingRank& rank : ranks) {
    if (may_be_anywhere(rank, ranks)) continue;
    ++frames[by_frame(rank)];
    ++places[where(rank)];
  }
  std::vector<int> alike;
  for (const WaitingRank& rank : ranks) {
    if (may_be_anywhere(rank, ranks)) {
      alike.push_back(0);
    } else {
      alike.push_back(frames.size() > 1 ? frames.at(by_frame(rank)) : places.at(where(rank)));
    }
  }
  return alike;
}

}  // namespace

std::string hang_text(const std::vector<WaitingRank>& ranks, const WorkerGroup& group,
                      std::chrono::milliseconds timeout) {
  const auto& assignment = group.assignment();
  struct Group {
    hang::WaitPlace place;
    std::vector<int> ranks;
  };
  std::map<std::string, Group> by_place;
  for (const WaitingRank& rank : ranks) {
    // What has no name but a number has another one in each rank.
    const bool unnamed =
        rank.place.file.starts_with(" of socket:[") || rank.place.file.starts_with(" of pipe:[");
    Group& group_there = by_place[rank.place.text() + (unnamed ? " of " : rank.place.file)];
    group_there.place = rank.place;
    if (unnamed && !group_there.ranks.empty()) group_there.place.file.clear();
    group_there.ranks.push_back(assignment.first_rank + rank.local_rank);
  }
  std::vector<Group> groups;
  for (auto& [text, each] : by_place)
    groups.push_back(std::move(each));
  const auto place_in_text = [](const Group& each) {
    return std::pair(each.place.whom != hang::Awaited::Whom::OwnChild, each.ranks.size());
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return place_in_text(a) < place_in_text(b);
  });
  std::string text = "the job hangs: no rank of " + std::to_string(assignment.world_size) +
                     " has made progress for " + describe_duration(timeout.count());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i == kMostPlaces) {
      text += "; and " + std::to_string(groups.size() - i) + " more places";
      break;
    }
    const auto& [place, waiting] = groups[i];
    text += (i == 0 ? ": " : "; ") + ranks_text(waiting) + " " + place.text(waiting.size() != 1) +
            place.file;
  }
  return text;
}

std::vector<HungRank> hang_faults(const std::vector<WaitingRank>& ranks,
                                  std::chrono::milliseconds timeout, bool for_good,
                                  std::chrono::milliseconds others_within) {
  const std::vector<int> alike = count_alike(ranks);
  std::vector<HungRank> hung;
  for (const WaitingRank& rank : ranks) {
    RankFault fault;
    fault.exit_code = kTimeLimit;
    fault.cause = cause_of(rank, timeout);
    fault.hangs = true;
    fault.clue.behind = rank.behind;
    fault.clue.for_own_child = rank.place.whom == hang::Awaited::Whom::OwnChild;
    fault.clue.for_others = rank.for_ranks || rank.place.whom == hang::Awaited::Whom::Others;
    // A place that was not found is no other one than that of the others.
    if (!rank.place.call.empty() || rank.place.stopped || !rank.frame.empty())
      fault.clue.alike = alike[hung.size()];
    fault.clue.place = place_of(rank);
    fault.clue.others_within = others_within;
    fault.for_good = for_good;
    fault.with_others = true;
    hung.push_back({rank.local_rank, rank.pid, std::move(fault)});
  }
  return hung;
}

std::string doubt_text(const hang::Doubt& doubt, const WorkerGroup& group) {
  const auto worker = group.workers().find(doubt.worker);
  const std::string rank =
      worker == group.workers().end()
          ? ""
          : "of rank " + std::to_string(group.assignment().first_rank + worker->second.local_rank) +
                ": ";
  return "no rank of this node has written, read or received anything for --hang-timeout; that is "
         "not taken for a hang, because " +
         rank + doubt.why + (group.workers().size() > 1 ? " (and perhaps others)" : "");
}

}  // namespace drun::launcher
