#include "launcher/report/hang_suspicion.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/lower_case.hpp"
#include "base/number_ranges.hpp"
#include "rendezvous/failure_merge.hpp"

namespace drun::launcher {
namespace {

constexpr std::array<std::string_view, 10> kTimeouts{
    "timed out",         "timing out",       "timeouterror",    "timeout after",
    "operation timeout", "socket timeout",   "timeout expired", "timeout exceeded",
    "deadline exceeded", "deadline_exceeded"};
// With one of these, at the beginning of a word, the wait was for other ranks. Not just "rank": a
// line may begin with it, whatever it says.
constexpr std::array<std::string_view, 16> kPeers{
    "collective",     "allreduce",    "all_reduce",          "allgather", "all_gather",
    "alltoall",       "all_to_all",   "broadcast",           "barrier",   "recv operation",
    "send operation", "wait timeout", "waiting for clients", "from rank", "other ranks",
    "process group"};
// What torch's watchdog prints, some lines before the last. Of other lines only the last one
// counts: those before it may tell of what the program has survived.
constexpr std::array<std::string_view, 1> kWatchdog{"collective operation timeout"};

constexpr std::size_t kMostSuspicions = 4;  // lines

bool is_letter(char c) {
  return lower_case(c) >= 'a' && lower_case(c) <= 'z';
}

template <typename Words>
bool has_one(std::string_view text, const Words& words, bool at_beginning_of_word = false) {
  const auto same = [](char a, char b) { return lower_case(a) == b; };
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    for (auto at = text.begin();; ++at) {
      at = std::search(at, text.end(), word.begin(), word.end(), same);
      if (at == text.end()) return false;
      if (!at_beginning_of_word || at == text.begin() || !is_letter(*std::prev(at))) return true;
    }
  });
}

enum class Wait { None, Any, ForPeers };

Wait wait_in(std::string_view line) {
  if (!has_one(line, kTimeouts)) return Wait::None;
  return has_one(line, kPeers, true) ? Wait::ForPeers : Wait::Any;
}

Wait wait_of(std::string_view last_words, const std::vector<std::string>& tail) {
  const bool watchdog = std::any_of(
      tail.begin(), tail.end(), [](const std::string& line) { return has_one(line, kWatchdog); });
  return watchdog ? Wait::ForPeers : wait_in(last_words);
}

// How many ranks of the job ran into a time-out.
std::size_t count_waiting(const rendezvous::FailureSummary& root) {
  int count = 1;
  for (const auto& group : root.others)
    if (wait_in(group.last_words) != Wait::None) count = rendezvous::add_ranks(count, group);
  return static_cast<std::size_t>(count);
}

// What the words of those that failed say: the same for each of thousands of nodes.
struct Words {
  Wait wait = Wait::None;
  std::size_t waiting = 0;  // ranks that ran into a time-out
  int failed = 0;
};

Words words_of(const rendezvous::FailureSummary& root) {
  Words words;
  words.wait = wait_of(root.last_words, root.tail);
  if (words.wait == Wait::None) return words;
  words.waiting = count_waiting(root);
  words.failed = rendezvous::count_ranks(root);
  return words;
}

// Of several nodes each knows by the failures of all how many ranks of the job still ran.
StoppedRanks in_job(StoppedRanks stopped, const Words& words) {
  const int running = stopped.job_ranks - words.failed;
  if (stopped.job_ranks == 0 || stopped.few || running > stopped.job_ranks / 2) return stopped;
  stopped.few = true;
  stopped.silent = stopped.quiet;
  stopped.silent_for = stopped.quiet_for;
  return stopped;
}

// SIGKILL tells most; but where many need it, they ignore the stop's signal.
std::vector<int> stands_out(const StoppedRanks& stopped) {
  const bool few = stopped.few || stopped.killed.size() * 2 <= stopped.running.size();
  if (!stopped.killed.empty() && few && !stopped.at_once) return stopped.killed;
  return stopped.silent;
}

// All other ranks of the job ran into a time-out.
bool is_the_last(const StoppedRanks& stopped, const Words& words) {
  if (stopped.running.size() != 1 || !stopped.succeeded.empty()) return false;
  if (stopped.job_ranks > 0 && words.failed != stopped.job_ranks - 1) return false;
  return words.waiting == static_cast<std::size_t>(words.failed);
}

std::optional<Suspicion> suspect(const rendezvous::FailureSummary& root, const Words& words,
                                 const StoppedRanks& on_node) {
  if (words.wait == Wait::None || on_node.expected) return std::nullopt;
  const StoppedRanks stopped = in_job(on_node, words);
  Suspicion result;
  result.ranks = stands_out(stopped);
  // It may hang in what it does, and print.
  const bool prints = result.ranks.empty() && is_the_last(stopped, words);
  if (prints) result.ranks = stopped.running;
  if (result.ranks.empty()) return std::nullopt;
  if (words.wait != Wait::ForPeers && words.waiting <= result.ranks.size()) return std::nullopt;

  const bool one = result.ranks.size() == 1;
  const std::string they = one ? "it" : "they";
  std::string text =
      ranks_text(result.ranks) + (one ? " seems" : " seem") + " to hang: when " +
      (prints ? "the waits of all others" : "rank " + std::to_string(root.rank) + "'s wait") +
      " timed out, " + they + (one ? " was" : " were") + " still running";
  if (result.ranks == stopped.silent)
    text += ", silent for " + (one ? "" : std::string("at least ")) + stopped.silent_for;
  if (!stopped.killed.empty() && !stopped.at_once)
    text += "; " + (stopped.killed == result.ranks ? they : ranks_text(stopped.killed)) +
            " needed SIGKILL";
  result.text = on_host(stopped, text);
  return result;
}

}  // namespace

bool speaks_of_timeout(std::string_view last_words, const std::vector<std::string>& tail) {
  return wait_of(last_words, tail) != Wait::None;
}

std::optional<Suspicion> suspect_hang(const rendezvous::FailureSummary& root,
                                      const StoppedRanks& on_node) {
  return suspect(root, words_of(root), on_node);
}

std::vector<Suspicion> suspect_hangs(const rendezvous::FailureSummary& root,
                                     const StoppedRanks& own,
                                     const std::vector<StoppedRanks>& others) {
  std::vector<Suspicion> all;
  const Words words = words_of(root);
  if (auto here = suspect(root, words, own)) all.push_back(std::move(*here));
  for (const StoppedRanks& node : others)
    if (auto there = suspect(root, words, node)) all.push_back(std::move(*there));
  if (all.size() <= kMostSuspicions) return all;
  Suspicion folded;
  folded.ranks = ranks_of(all);
  folded.text = "on " + std::to_string(all.size()) + " nodes, " + ranks_text(folded.ranks) +
                " seem to hang: when rank " + std::to_string(root.rank) +
                "'s wait timed out, they were still running";
  return {std::move(folded)};
}

std::vector<int> ranks_of(const std::vector<Suspicion>& suspicions) {
  std::vector<int> ranks;
  for (const Suspicion& suspicion : suspicions)
    ranks.insert(ranks.end(), suspicion.ranks.begin(), suspicion.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace drun::launcher
