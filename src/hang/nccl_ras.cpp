#include "hang/nccl_ras.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/fnv1a.hpp"
#include "base/number_ranges.hpp"
#include "base/printable.hpp"
#include "base/read_answer.hpp"
#include "base/tcp_calls.hpp"
#include "base/utf8.hpp"
#include "hang/connections.hpp"

namespace drun::hang {
namespace {

using Time = std::chrono::steady_clock::time_point;
using Ranks = std::vector<const RasRank*>;

constexpr std::uint16_t kRasPort = 28'028;
// 100,000 ranks, or 10,000 in ten communicators.
constexpr std::size_t kLongestAnswer = std::size_t{64} * 1'048'576;
constexpr std::size_t kLongestNumbers = 100;  // of ranks, in a text
constexpr std::size_t kLongestText = 300;

Error no_answer(std::string what) {
  return {std::make_error_code(std::errc::protocol_error), std::move(what)};
}

bool is_for_all(const std::string& operation) {
  return operation.find("Send") == operation.npos && operation.find("Recv") == operation.npos;
}

// One rank is named with its process, if the job's ranks are others than the communicator's.
std::string name_of(const Ranks& ranks, int size, bool ranks_of_job) {
  std::vector<int> numbers;
  for (const RasRank* each : ranks)
    numbers.push_back(each->rank);
  std::string name = ranks_text(numbers);
  if (name.size() > kLongestNumbers)
    name = name.substr(0, name.rfind(',', kLongestNumbers)) + ",...";
  if (ranks_of_job) return name;
  name += " of a communicator of " + std::to_string(size);
  if (ranks.size() == 1)
    name += " (process " + std::to_string(ranks[0]->pid) + " on " + printable(ranks[0]->host) + ")";
  return name;
}

CollectiveGap gap_with(std::string_view text, const Ranks& behind) {
  CollectiveGap gap{std::string(cut_utf8(text, kLongestText)), {}};
  for (const RasRank* each : behind)
    gap.behind.push_back(*each);
  return gap;
}

std::uint64_t begun_by(const RasRank& rank, const std::string& operation) {
  const auto found = rank.begun.find(operation);
  return found == rank.begun.end() ? 0 : found->second;
}

CollectiveGap gap_in(const RasCommunicator& communicator, const std::string& operation,
                     std::uint64_t most, bool ranks_of_job) {
  Ranks behind;
  Ranks ahead;
  std::uint64_t least = most;
  for (const RasRank& each : communicator.ranks) {
    const std::uint64_t begun = begun_by(each, operation);
    least = std::min(least, begun);
    (begun < most ? behind : ahead).push_back(&each);
  }
  const bool few_behind = behind.size() <= ahead.size();
  const auto& few = few_behind ? behind : ahead;
  const std::size_t others = few_behind ? ahead.size() : behind.size();
  return gap_with(
      name_of(few, communicator.size, ranks_of_job) + (few.size() == 1 ? " has" : " have") +
          " begun " + std::to_string(few_behind ? least : most) + " " + printable(operation) +
          ", " + (others == 1 ? "the other" : "the " + std::to_string(others) + " others") + " " +
          std::to_string(few_behind ? most : least),
      behind);
}

// An answer may have very many ranks: each is looked at once.
std::optional<CollectiveGap> gap_of(const RasCommunicator& communicator, bool ranks_of_job) {
  struct Tally {
    std::uint64_t most = 0;
    std::size_t ranks = 0;  // that have begun so many
  };
  std::map<std::string, Tally> tallies;
  for (const RasRank& each : communicator.ranks) {
    if (each.leaving) return std::nullopt;  // an end is no hang
    for (const auto& [operation, count] : each.begun) {
      Tally& tally = tallies[operation];
      if (count > tally.most) tally = {count, 0};
      if (count == tally.most) ++tally.ranks;
    }
  }
  for (const auto& [operation, tally] : tallies)
    if (is_for_all(operation) && tally.most > 0 && tally.ranks < communicator.ranks.size())
      return gap_in(communicator, operation, tally.most, ranks_of_job);
  if (communicator.missing.empty()) return std::nullopt;
  Ranks missing;
  for (const RasRank& each : communicator.missing)
    missing.push_back(&each);
  return gap_with(name_of(missing, communicator.size, ranks_of_job) +
                      (missing.size() == 1 ? " gives" : " give") + " no answer to NCCL",
                  missing);
}

// Two answers with the same have said the same. Nothing of it is kept but this.
class Fingerprint {
 public:
  void add(std::uint64_t value) {
    value_ = (value_ ^ value) * 1099511628211U;
    value_ ^= value_ >> 29;
  }
  void add(const std::vector<RasRank>& ranks) {
    add(ranks.size());
    for (const RasRank& each : ranks) {
      add(static_cast<std::uint64_t>(each.rank));
      add(static_cast<std::uint64_t>(each.pid));
      add(fnv1a(each.host));
      add(each.leaving ? 1 : 0);
      add(each.begun.size());
      for (const auto& [operation, count] : each.begun) {
        add(fnv1a(operation));
        add(count);
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// The lines before the answer itself: one for each of our commands.
Status take_replies(std::string& bytes, std::size_t commands) {
  for (std::size_t i = 0; i < commands; ++i) {
    const auto end = bytes.find('\n');
    if (end == bytes.npos) return no_answer("it does not speak the protocol of NCCL's RAS service");
    const std::string line = bytes.substr(0, end);
    if (!line.starts_with("SERVER PROTOCOL ") && line != "OK")
      return no_answer("it says '" + printable(line.substr(0, 80)) + "'");
    bytes.erase(0, end + 1);
  }
  return Done{};
}

// Any user of the machine may listen at that port while NCCL does not, and could have a busy job
// fail as one that hangs. Of another machine nobody can tell.
Status check_listener(const Endpoint& place) {
  if (!is_own_address(place.host)) return Done{};
  const auto user = user_listening_at(place);
  if (user && (*user == ::geteuid() || *user == 0)) return Done{};
  return no_answer(user ? "user " + std::to_string(*user) + " listens there"
                        : "the kernel does not tell who listens there");
}

Result<FileDescriptor> connect_to(const Endpoint& endpoint, Time deadline) {
  Error error(std::make_error_code(std::errc::invalid_argument), "the name means nothing here");
  for (const std::string& address : look_up(endpoint.host)) {
    auto socket = begin_connect({address, endpoint.port});
    if (!socket) {
      error = socket.error();
      continue;
    }
    auto connected = end_connect(socket->get(), deadline);
    if (connected) connected = check_listener({address, endpoint.port});
    if (connected) return std::move(*socket);
    error = connected.error();
  }
  return error;
}

}  // namespace

// Another machine may have a process of the same number. Few are asked for: that takes a while.
bool is_one_of(const RasRank& rank, const std::set<pid_t>& processes) {
  return processes.contains(rank.pid) && is_own_address(rank.host);
}

bool speaks_of(const RasStatus& status, const std::set<pid_t>& processes) {
  const auto known = [&](const RasRank& rank) { return is_one_of(rank, processes); };
  return std::any_of(status.begin(), status.end(), [&](const RasCommunicator& each) {
    return std::any_of(each.ranks.begin(), each.ranks.end(), known);
  });
}

std::optional<CollectiveGap> collective_gap(const RasStatus& status, int world_size) {
  std::vector<const RasCommunicator*> largest;
  for (const RasCommunicator& each : status)
    largest.push_back(&each);
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto* a, const auto* b) { return a->size > b->size; });
  for (const RasCommunicator* each : largest)
    if (auto gap = gap_of(*each, each->size == world_size)) return gap;
  return std::nullopt;
}

RasAnswer conclude(const RasStatus& status, int world_size) {
  Fingerprint fingerprint;
  for (const RasCommunicator& each : status) {
    fingerprint.add(static_cast<std::uint64_t>(each.size));
    fingerprint.add(each.ranks);
    fingerprint.add(each.missing);
  }
  return {fingerprint.value(), collective_gap(status, world_size)};
}

void StuckCollectives::on_answer(std::optional<RasAnswer> answer) {
  const bool same = answer && last_ && answer->fingerprint == last_->fingerprint;
  last_ = std::move(answer);
  stuck_ = same ? last_->gap : std::nullopt;
}

std::optional<CollectiveGap> StuckCollectives::gap() const {
  return last_ ? last_->gap : std::nullopt;
}

std::string StuckCollectives::text() const {
  if (!last_) return {};
  return "NCCL: " + (last_->gap ? last_->gap->text : "all ranks have begun the same collectives");
}

Endpoint ras_endpoint(std::string_view address) {
  const auto parsed = parse_endpoint(address, kRasPort);
  return parsed && !address.empty() ? *parsed : Endpoint{"localhost", kRasPort};
}

Result<RasStatus> ask_ras(const Endpoint& endpoint, std::chrono::milliseconds limit) {
  const Time deadline = std::chrono::steady_clock::now() + limit;
  const auto socket = connect_to(endpoint, deadline);
  if (!socket) return socket.error();
  // It waits so long for those that do not answer, and says then who they are.
  const auto patience = std::max<long long>(1, limit.count() / 2'000);
  const std::array commands{std::string("CLIENT PROTOCOL 2\n"),
                            "TIMEOUT " + std::to_string(patience) + "\n",
                            std::string("SET FORMAT json\n")};
  std::string request;
  for (const std::string& each : commands)
    request += each;
  if (const auto sent = send_all(socket->get(), request + "VERBOSE STATUS\n", deadline); !sent)
    return sent.error();
  auto bytes = read_answer(socket->get(), kLongestAnswer, deadline);
  if (!bytes) return bytes.error();
  if (const auto replies = take_replies(*bytes, commands.size()); !replies) return replies.error();
  return decode_ras_status(*bytes);
}

}  // namespace drun::hang
