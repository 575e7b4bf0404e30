// The sessions of the control protocol: leases with a time to live. Knows the time only as an
// argument; the ephemeral keys themselves are the table's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/protocol/control_protocol.hpp"
#include "store/table/budget.hpp"
#include "store/table/table.hpp"

namespace drun::store {

using Time = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// The connection that a session belongs to.
class SessionHolder {
 public:
  SessionHolder() = default;
  SessionHolder(const SessionHolder&) = delete;
  SessionHolder& operator=(const SessionHolder&) = delete;
  virtual ~SessionHolder() = default;

  // It is no longer this connection's.
  virtual void on_session_ended(control::EndReason reason) = 0;
};

class Sessions {
 public:
  static constexpr Milliseconds kShortestTtl{100};
  static constexpr Milliseconds kLongestTtl{24 * 3600 * 1000};
  static constexpr Milliseconds kLongestGrace{kLongestTtl};
  // What a session counts in the budget.
  static constexpr std::size_t kOverheadBytes = 256;

  // What has to outlive a restart of the store.
  struct Record {
    SessionId id = kNoSession;
    control::Token token{};
    Milliseconds ttl{0};
    Milliseconds grace{0};
  };

  // `table` holds the ephemeral keys; it and `budget` outlive this.
  Sessions(KeyTable& table, Budget& budget) : table_(table), budget_(budget) {}
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;
  ~Sessions();

  // A session for `holder`, with times brought within the bounds. `token` is random. `job` is the
  // name of the one that it counts for; empty: of none. Null: over the budget. The record lives
  // until the session ends.
  const Record* open(SessionHolder& holder, Milliseconds ttl, Milliseconds grace,
                     const control::Token& token, Time now, std::string_view job = {});
  // Moves the session to `holder`, and calls on_session_ended() of the one that had it. False: no
  // such session, or not its token.
  bool resume(SessionHolder& holder, SessionId id, const control::Token& token, Time now);
  // It was heard from. Precondition for these three: the session exists.
  void renew(SessionId id, Time now);
  void detach(SessionId id, Time now);  // its connection ended: the grace begins
  void close(SessionId id);             // goodbye

  // Ends the sessions whose time is up, until watches were told more than `most` bytes of it: the
  // others are ended next time.
  void expire(Time now, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  // From now on: told of each session that has ended, however it did.
  void tell_ends(std::function<void(SessionId)> sink) { on_end_ = std::move(sink); }
  // When to call expire() next.
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // When it was last heard from; nullopt: no such session. One from a snapshot counts as heard from
  // when that was read.
  struct Word {
    Time heard;
    Milliseconds ttl{0};
  };
  [[nodiscard]] std::optional<Word> last_word(SessionId id) const;

  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  template <typename Visit>  // Visit(const Record&), in no order
  void for_each(Visit visit) const {
    for (const auto& [id, session] : sessions_)
      visit(session.record);
  }
  // A session from a snapshot, without a connection, alive for its time to live from now on. False:
  // over the budget. Precondition: its id is free.
  [[nodiscard]] bool restore(const Record& record, Time now);
  // Grows whenever a record comes, changes or goes.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  struct Session {
    Record record;
    std::optional<std::string> job;  // nullopt: nobody knows it, of one from a snapshot
    SessionHolder* holder = nullptr;
    Time heard;
    Time deadline;
    Time queued;  // where it stands in deadlines_; its other places there are stale
  };
  using Deadline = std::pair<Time, SessionId>;

  void hear(Session& session, Time now);
  void set_deadline(Session& session, Time deadline);
  void queue(Session& session);
  void end(SessionId id);
  void give_back(const Session& session);
  void forget_stale_deadlines();

  KeyTable& table_;
  Budget& budget_;
  std::function<void(SessionId)> on_end_ = [](SessionId) {};
  std::unordered_map<SessionId, Session> sessions_;
  // Each session at or before its deadline. A renewal moves nothing here: when the time comes the
  // session is put off to its new deadline.
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  SessionId last_id_ = kNoSession;
  std::uint64_t generation_ = 0;
};

}  // namespace drun::store
