#include "hang/nccl_ras.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/addresses.hpp"
#include "base/number_ranges.hpp"
#include "base/poll_until.hpp"
#include "base/printable.hpp"
#include "base/tcp_calls.hpp"

namespace drun::hang {
namespace {

using nlohmann::json;
using Time = std::chrono::steady_clock::time_point;

constexpr std::uint16_t kRasPort = 28'028;
// 100,000 ranks in a few communicators.
constexpr std::size_t kLongestAnswer = std::size_t{256} * 1'048'576;

Error no_answer(std::string what) {
  return {std::make_error_code(std::errc::protocol_error), std::move(what)};
}

int int_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return -1;
  const auto value = found->get<std::int64_t>();
  return value < 0 || value > std::numeric_limits<int>::max() ? -1 : static_cast<int>(value);
}

bool set_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

RasRank rank_in(const json& object) {
  RasRank rank;
  rank.rank = int_in(object, "rank");
  rank.pid = int_in(object, "pid");
  if (const auto host = object.find("host"); host != object.end() && host->is_string())
    rank.host = host->get<std::string>();
  if (const auto state = object.find("status"); state != object.end() && state->is_object())
    rank.leaving = set_in(*state, "finalize_called") || set_in(*state, "destroy_flag") ||
                   set_in(*state, "abort_flag");
  const auto counts = object.find("collective_counts");
  if (counts == object.end() || !counts->is_object()) return rank;
  for (const auto& [name, count] : counts->items())
    if (count.is_number_unsigned()) rank.begun[name] = count.get<std::uint64_t>();
  return rank;
}

std::vector<RasRank> ranks_in(const json& communicator, const char* name) {
  std::vector<RasRank> ranks;
  const auto found = communicator.find(name);
  if (found == communicator.end() || !found->is_array()) return ranks;
  for (const json& each : *found) {
    if (!each.is_object()) continue;
    RasRank rank = rank_in(each);
    if (rank.rank >= 0) ranks.push_back(std::move(rank));
  }
  return ranks;
}

bool is_for_all(const std::string& operation) {
  return operation.find("Send") == operation.npos && operation.find("Recv") == operation.npos;
}

// One rank is named with its process, if the job's ranks are others than the communicator's.
std::string name_of(const std::vector<RasRank>& ranks, int size, bool ranks_of_job) {
  std::vector<int> numbers;
  for (const RasRank& each : ranks)
    numbers.push_back(each.rank);
  std::string name = ranks_text(numbers);
  if (ranks_of_job) return name;
  name += " of a communicator of " + std::to_string(size);
  if (ranks.size() == 1)
    name += " (process " + std::to_string(ranks[0].pid) + " on " + printable(ranks[0].host) + ")";
  return name;
}

std::optional<CollectiveGap> gap_of(const RasCommunicator& communicator, bool ranks_of_job) {
  std::map<std::string, std::uint64_t> most;
  for (const RasRank& each : communicator.ranks) {
    if (each.leaving) return std::nullopt;  // an end is no hang
    for (const auto& [operation, count] : each.begun)
      most[operation] = std::max(most[operation], count);
  }
  for (const auto& [operation, count] : most) {
    if (!is_for_all(operation)) continue;
    std::vector<RasRank> behind;
    std::vector<RasRank> ahead;
    std::uint64_t least = count;
    for (const RasRank& each : communicator.ranks) {
      const auto found = each.begun.find(operation);
      const std::uint64_t begun = found == each.begun.end() ? 0 : found->second;
      least = std::min(least, begun);
      (begun < count ? behind : ahead).push_back(each);
    }
    if (behind.empty()) continue;
    const bool few_behind = behind.size() <= ahead.size();
    const auto& few = few_behind ? behind : ahead;
    const std::size_t others = few_behind ? ahead.size() : behind.size();
    return CollectiveGap{
        name_of(few, communicator.size, ranks_of_job) + (few.size() == 1 ? " has" : " have") +
            " begun " + std::to_string(few_behind ? least : count) + " " + printable(operation) +
            ", " + (others == 1 ? "the other" : "the " + std::to_string(others) + " others") + " " +
            std::to_string(few_behind ? count : least),
        behind};
  }
  if (communicator.missing.empty()) return std::nullopt;
  return CollectiveGap{name_of(communicator.missing, communicator.size, ranks_of_job) +
                           (communicator.missing.size() == 1 ? " gives" : " give") +
                           " no answer to NCCL",
                       communicator.missing};
}

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

Result<std::string> read_all(int socket, Time deadline) {
  std::string bytes;
  std::array<char, 65'536> piece{};
  for (;;) {
    const auto n = ::recv(socket, piece.data(), piece.size(), MSG_DONTWAIT);
    if (n == 0) return bytes;
    if (n > 0) {
      bytes.append(piece.data(), static_cast<std::size_t>(n));
      if (bytes.size() > kLongestAnswer) return no_answer("its answer is too long");
    } else if (errno != EAGAIN && errno != EINTR) {
      return Error::from_errno(errno, "recv");
    } else if (!await_ready(socket, POLLIN, deadline)) {
      return Error(std::make_error_code(std::errc::timed_out), "it gives no answer");
    }
  }
}

Result<FileDescriptor> connect_to(const Endpoint& endpoint, Time deadline) {
  Error error(std::make_error_code(std::errc::invalid_argument), "the name means nothing here");
  for (const std::string& address : look_up(endpoint.host)) {
    auto socket = begin_connect({address, endpoint.port});
    if (!socket) {
      error = socket.error();
      continue;
    }
    const auto connected = end_connect(socket->get(), deadline);
    if (connected) return std::move(*socket);
    error = connected.error();
  }
  return error;
}

}  // namespace

Result<RasStatus> decode_ras_status(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return no_answer("its answer is no JSON");
  const auto communicators = document.find("communicators");
  if (communicators == document.end() || !communicators->is_array())
    return no_answer("its answer has no communicators");
  RasStatus status;
  for (const json& each : *communicators) {
    if (!each.is_object()) continue;
    RasCommunicator communicator;
    communicator.size = int_in(each, "size");
    communicator.ranks = ranks_in(each, "ranks");
    communicator.missing = ranks_in(each, "missing_ranks");
    status.push_back(std::move(communicator));
  }
  return status;
}

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

void StuckCollectives::on_status(const std::optional<RasStatus>& status, int world_size) {
  gap_ = status ? collective_gap(*status, world_size) : std::nullopt;
  stuck_ = status && status == last_ ? gap_ : std::nullopt;
  last_ = status;
}

std::string StuckCollectives::text() const {
  if (!last_) return {};
  return "NCCL: " + (gap_ ? gap_->text : "all ranks have begun the same collectives");
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
  auto bytes = read_all(socket->get(), deadline);
  if (!bytes) return bytes.error();
  if (const auto replies = take_replies(*bytes, commands.size()); !replies) return replies.error();
  return decode_ras_status(*bytes);
}

}  // namespace drun::hang
