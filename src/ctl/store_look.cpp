#include "ctl/store_look.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/random_bytes.hpp"
#include "drun/store/errors.hpp"
#include "rendezvous/keys.hpp"
#include "stacks/job_look.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using stacks::StackReport;
using store::ControlQuery;

// For each node to look, and for the request and its answers.
constexpr std::chrono::milliseconds kNodeLimit{10'000};
constexpr std::chrono::milliseconds kOnTheWay{3'000};
constexpr std::size_t kMostWrites = 100;  // of a transaction
// Longer than all of it takes. It ends with the connection.
constexpr std::uint32_t kSessionMs = 60'000;

class StoreLook {
 public:
  StoreLook(ControlQuery& query, const std::string& job, Deadline deadline)
      : query_(query), keys_(job), deadline_(deadline) {}

  Result<StackReport> take(const std::vector<stacks::NodeRanks>& nodes, int round, bool quick) {
    stacks::JobLook look;
    look.id = random_name(16);
    look.unwind = !quick;
    look.limit = kNodeLimit;
    look.longest = stacks::longest_answer(nodes.size());
    look.round = round;
    auto watched = read_documents(query_, keys_.answers_to(look.id), deadline_);
    if (!watched) return watched.error();
    // An interrupted drunctl must leave no request behind, which agents would obey later. The
    // session of another job's look is as good, and the error that it is there no matter.
    const auto session = answer_to(control::OpenSession{kSessionMs, 0});
    if (!session) return session.error();
    const std::string text = encode(look);
    if (const Status asked = write({{keys_.look, text, true}}); !asked) return asked.error();
    const auto end = std::min(deadline_, std::chrono::steady_clock::now() + kNodeLimit + kOnTheWay);
    const Status heard = collect(watched->watch, nodes.size(), end);
    const Status cleared = clear();
    if (!heard) return heard.error();
    if (!cleared) return cleared.error();
    return stacks::fold_answers(answers_, nodes.size(), nodes);
  }

 private:
  // Until the time is over: who has not answered by then is counted.
  Status collect(std::uint64_t watch, std::size_t nodes, Deadline end) {
    while (answers_.size() < nodes) {
      const auto reply = query_.receive(watch, end);
      if (!reply && reply.error().code() == store::Errc::Timeout) break;
      if (!reply) return reply.error();
      const auto* changes = std::get_if<control::Changes>(&*reply);
      if (changes == nullptr) continue;
      for (const control::Entry& entry : changes->changes)
        if (entry.value) answers_.insert_or_assign(std::string(entry.key), *entry.value);
    }
    return Done{};
  }
  Status clear() {
    std::vector<control::Write> writes{{keys_.look, std::nullopt, false}};
    for (const auto& [key, text] : answers_) {
      writes.push_back({key, std::nullopt, false});
      if (writes.size() < kMostWrites) continue;
      if (const Status done = write(std::exchange(writes, {})); !done) return done;
    }
    return writes.empty() ? Status(Done{}) : write(std::move(writes));
  }
  Status write(std::vector<control::Write> writes) {
    control::Transaction all;
    all.writes = std::move(writes);
    const auto reply = answer_to(all);
    if (!reply) return reply.error();
    return Done{};
  }
  Result<control::Reply> answer_to(const control::Request& request) {
    const auto number = query_.send(request, deadline_);
    if (!number) return number.error();
    return query_.receive(*number, deadline_);
  }

  ControlQuery& query_;
  const rendezvous::Keys keys_;
  const Deadline deadline_;
  std::map<std::string, std::string> answers_;
};

}  // namespace

Result<StackReport> look_through_store(ControlQuery& query, const std::string& job,
                                       const std::vector<stacks::NodeRanks>& nodes, int round,
                                       bool quick, Deadline deadline) {
  return StoreLook(query, job, deadline).take(nodes, round, quick);
}

}  // namespace drun::ctl
