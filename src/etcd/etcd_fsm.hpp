// The decisions of an agent's connection to etcd: which member to ask what, and what to tell the
// caller. Answers and the time go in, calls and events come out; no socket and no clock.
//
// A session is a lease. How the promises of rendezvous::KeyValue are kept:
//
// Order: one transaction or list of keys is asked for at a time, in the order of the calls. A watch
// is the list of its keys at one revision and a stream of what came after that.
//
// What is lost with a connection never takes effect later: each transaction is guarded by a key of
// the session, the fence. A reconnection writes a higher number into it before it reads anything,
// so that a transaction which is still on its way somewhere fails.
//
// A session that is renewed is alive: a member that was cut off or stopped may answer for a cluster
// that has moved on. So each heartbeat keeps the lease alive and then looks for the fence by a read
// that a majority must confirm, in the same term.
//
// A session that is replaced is over: such a member may also say that there is no lease although
// there is one. So a lease is revoked, which a majority must confirm, before another is granted.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "etcd/etcd_messages.hpp"
#include "etcd/etcd_options.hpp"
#include "etcd/etcd_watches.hpp"
#include "rendezvous/key_value.hpp"
#include "store/client/backoff.hpp"

namespace drun::etcd {

// One HTTP POST to the member at hand.
struct EtcdCall {
  std::uint64_t id = 0;
  std::string path;
  std::string body;
  bool streams = false;  // the answer comes line by line, without an end
  bool once = false;     // to do it twice is not the same
};

struct EtcdReply {
  int status = 0;  // HTTP's; 0: there was no answer, and `error` says why
  std::string body;
  std::string error;
  bool final = false;   // the same would happen each time: a certificate that is not accepted
  bool closed = false;  // the connection was made, and closed without a word
};

class EtcdFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `seed`: which member is asked first, and how pauses are spread.
  EtcdFsm(EtcdOptions options, std::uint32_t seed);

  // The caller's.
  void open(Time now);
  void watch(rendezvous::WatchId watch, std::string key, bool prefix, Time now);
  void unwatch(rendezvous::WatchId watch);
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction, Time now);
  void close(Time now);

  // There is no way to ask anybody anything, and will not be.
  void on_unusable(std::string why);
  // The network's. `cause` is a bare one.
  void on_unreachable(const std::string& cause, bool final, Time now);
  void on_reply(std::uint64_t call, const EtcdReply& reply, Time now);
  void on_stream(std::uint64_t call, std::string_view bytes, Time now);

  // At or after next_deadline().
  void on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // The member to talk to now. A new number: drop all calls and connections of the old one.
  struct Member {
    std::uint64_t number = 0;
    std::size_t endpoint = 0;
    bool operator==(const Member&) const = default;
  };
  [[nodiscard]] std::optional<Member> member() const;
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] std::vector<EtcdCall> take_calls();
  [[nodiscard]] std::vector<std::uint64_t> take_canceled();
  [[nodiscard]] std::vector<rendezvous::KeyValueEvent> take_events();

  // What ends the present session when it is sent to a member over a new connection without TLS;
  // empty: there is none.
  [[nodiscard]] std::string farewell() const;
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  enum class Phase { Idle, Connecting, Pausing, Up, Over };
  // Of Connecting, in their order.
  enum class Step { Authenticate, KeepAlive, EndSession, Grant, KeepJob, RaiseFence, CreateFence };
  // After an attempt that failed: another may do better, one at another member, or none.
  enum class Hope { Again, Elsewhere, None };
  struct Commit {
    rendezvous::RequestId request = 0;
    rendezvous::Transaction transaction;
  };
  struct Look {  // at the keys of a watch
    rendezvous::WatchId watch = 0;
    std::uint64_t serial = 0;
  };
  struct Goodbye {};
  using Work = std::variant<Commit, Look, Goodbye>;

  // ---- connecting ----
  void connect(Time now);
  void take_step(Step step, Time now);
  void on_step(const EtcdReply& reply, Time now);
  void on_step_refused(const Refusal& refusal, Time now);
  void on_no_etcd(const EtcdReply& reply, Time now);
  void on_token(const std::string& body, Time now);
  void on_kept_alive(const std::string& body, Time now);
  void on_session_ended(Time now);
  void on_granted(const std::string& body, Time now);
  void on_fence(const std::string& body, Time now);
  void session_ready(Time now);
  [[nodiscard]] std::chrono::milliseconds attempt_limit() const;

  // ---- up ----
  void do_work(Time now);
  void on_work(const EtcdReply& reply, Time now);
  void on_committed(const Commit& commit, const std::string& body, Time now);
  void on_looked(const Look& look, const std::string& body, Time now);
  void on_work_refused(const Refusal& refusal, Time now);
  void on_line(rendezvous::WatchId name, std::string_view line, Time now);
  void beat(Time now);
  void on_beat(const EtcdReply& reply, Time now);
  void on_presence(const EtcdReply& reply, Time now);
  void session_lost(Time now);
  [[nodiscard]] std::chrono::milliseconds beat_interval() const;
  void keep_job(Time now);
  // False: the connection was given up.
  [[nodiscard]] bool usable(const EtcdReply& reply, Time now);

  // ---- breaks and the end ----
  void attempt_failed(const std::string& cause, Hope hope, Time now);
  void lost(const std::string& cause, Time now, std::chrono::milliseconds silent = {});
  void drop_connection();
  void answer(rendezvous::RequestId request, rendezvous::CommitOutcome outcome,
              std::string detail = {});
  void give_up();
  void fail(std::string detail);
  void over(rendezvous::Link link, std::string detail);
  [[nodiscard]] std::string here() const;
  [[nodiscard]] std::string causes(const EtcdReply& reply) const;

  std::uint64_t call(std::string path, std::string body, bool streams = false);

  const EtcdOptions options_;
  const LeaseId job_lease_;
  store::Backoff backoff_;
  Phase phase_ = Phase::Idle;
  Step step_ = Step::Authenticate;
  std::size_t endpoint_;
  std::uint64_t connection_ = 0;
  bool had_session_ = false;
  bool granted_here_ = false;        // this connection has begun the session
  bool authenticated_here_ = false;  // and made the token
  LeaseId known_session_ = 0;        // that the caller was told of
  std::string token_;                // of the user; empty: none
  LeaseId session_ = 0;              // 0: none
  Fence fence_;
  std::uint64_t generation_ = 0;  // the number in the fence
  std::size_t failed_in_a_row_ = 0;
  std::size_t hopeless_in_a_row_ = 0;  // members that another attempt will not mend
  std::size_t closed_in_a_row_ = 0;
  // A connection has broken, and none since has shown that it does all that it is for.
  bool troubled_ = false;

  Time started_;         // trying to connect since
  Time give_up_;         // when not up
  Time phase_deadline_;  // of Connecting and Pausing
  std::uint64_t step_call_ = 0;
  Time alive_sent_;        // when the session was last asked to live on, or begun
  std::int64_t term_ = 0;  // of the answer to that

  Time next_beat_;
  std::optional<Time> beat_due_;     // a heartbeat, with its repetitions, is under way until then
  std::uint64_t beat_call_ = 0;      // keeps the lease alive; 0: none is under way
  std::uint64_t presence_call_ = 0;  // looks for the fence
  Time last_heard_;
  Time next_job_beat_;
  std::uint64_t job_call_ = 0;

  EtcdWatches watches_;
  std::deque<Work> work_;        // to be done, one after the other
  std::uint64_t work_call_ = 0;  // for the first of it; 0: none is under way
  Time work_due_;
  std::optional<Time> closing_by_;

  std::uint64_t last_call_ = 0;
  std::vector<EtcdCall> calls_;
  std::vector<std::uint64_t> canceled_;
  std::vector<rendezvous::KeyValueEvent> events_;
  std::string last_error_;
};

}  // namespace drun::etcd
