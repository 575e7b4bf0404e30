// Whose majority is with this server, and, for a server that is to succeed a store that was lost,
// who waits for it: it serves as soon as a majority has come and said that it knows.
// docs/protocol.md, section 1.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "drun/base/endpoint.hpp"
#include "drun/store/place.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/server/applicants.hpp"
#include "store/server/deaths.hpp"
#include "store/server/deserted_jobs.hpp"
#include "store/server/job_places.hpp"
#include "store/server/sought_jobs.hpp"
#include "store/table/electorate.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

class StoreSuccession {
 public:
  enum class Stage {
    Gathering,  // too few have come
    Calling,    // a majority has come, and is to say that it knows
    Serving     // a first store does so from the beginning
  };
  // Jobs beyond these have no majority here, as far as the server can tell.
  static constexpr std::size_t kMostJobs = 1024;

  struct Options {
    bool is_successor = false;
    std::uint32_t quorum = 0;  // as in Electorate::Options
    std::string job{};         // of a successor; empty: of the first who votes there
    Place founders{};          // who may begin the job's first store; nodes 0: nobody is named
    bool is_founding = false;  // they may begin it here
    // Of a job's first store: for so long after start() it only listens to who comes without a
    // vote. If their job runs elsewhere, that is told here meanwhile.
    Milliseconds listening{0};
  };
  // Of a first store that has had a majority of a job: when the last of its nodes has left, the job
  // is not begun anew before that. Agents look for their store for less, and tell of the next one.
  static constexpr Milliseconds kAbandoned{30'000};

  // `table` has the job's keys, and outlives this.
  StoreSuccession(Options options, KeyTable& table);

  // False: those who come have to apply().
  [[nodiscard]] bool is_serving() const { return stage_ == Stage::Serving; }
  [[nodiscard]] Stage stage() const { return stage_; }
  // A client that was called by a store of that generation must not be here, nor speak for itself
  // here.
  [[nodiscard]] bool is_older_than(std::uint64_t generation) const {
    return is_serving() && generation_ < generation;
  }
  // Clients may come from now on.
  void start(Time now) { listens_until_ = now + options_.listening; }
  // False: it has to apply(), although the server serves. Its job may run elsewhere, unless it
  // brings a round of that job here.
  [[nodiscard]] bool lets_in(const control::OpenSuccessor& request, Time now) const;
  // At or after next_deadline(): some may be let in.
  void on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // A successor serves one job.
  [[nodiscard]] bool serves(std::string_view job) const {
    return !options_.is_successor || !job_ || job == *job_;
  }

  // ---- sessions; these need one, and that the server serves ----

  void vote(SessionId session, std::string_view job, const Vote& vote, Time now);
  [[nodiscard]] control::Pulsed pulsed(std::string_view job, Time now);
  void confirm(SessionId session, std::uint64_t stamp, Time now);
  // Before the session is closed: nothing of its client is left.
  void goodbye(SessionId session, Time now);
  // The session is over.
  void ended(SessionId session, Time now);

  // ---- who waits ----

  // Precondition: serves(application.job), and !is_serving() or !lets_in(application).
  // The applicant's number from now on.
  VoterId apply(Applicant& applicant, const control::OpenSuccessor& application, Time now);
  void confirm_call(VoterId applicant, std::uint64_t stamp, Time now);
  // Its connection ended.
  void withdraw(VoterId applicant, Time now);

  // ---- anybody ----

  // `came`: the proof, which may not have been read for long.
  void gone(const control::Gone& proof, Time came, Time now);
  // Of a successor: all that it was told with gone() or goodbye(), for the next one,
  [[nodiscard]] const Deaths& deaths() const { return deaths_; }
  // which begins with it if it has a job.
  void recall(const Deaths& deaths, Time now);
  // See Server::point_to().
  [[nodiscard]] bool point_to(std::uint64_t generation, const Endpoint& store, Time now);
  // Takes note of what the asker knows. Precondition: serves(request.job).
  void hear(const control::Find& request, Time now);
  // What there is to say to that. The views are valid until the next call.
  [[nodiscard]] control::Moved find(std::string_view job, Time now) const;
  // For who asks of no job in particular: where a store is, if this one holds nothing. Likewise.
  [[nodiscard]] control::Moved signpost(Time now) const;
  // The job's store is not this one: generation 0 otherwise. Likewise.
  [[nodiscard]] control::Moved elsewhere(std::string_view job, Time now) const;
  // Whoever was told something else about where the job may begin does not meet the others here.
  // At a store that has begun so it is told more, by name.
  [[nodiscard]] bool disagrees(const control::Find& request) const {
    const bool matters = !options_.is_successor || (options_.is_founding && !is_serving());
    return matters && request.founders != options_.founders.electorate.round;
  }

 private:
  struct JobVoter {
    std::string job;
    VoterId voter = 0;
  };

  [[nodiscard]] std::uint64_t served_generation() const { return is_serving() ? generation_ : 0; }
  // Until then nobody without a vote is let in.
  [[nodiscard]] Time opens_at(std::string_view job) const;
  void hear_that_it_looks(const control::Find& request, Time now);
  void note_desertion(const std::string& job, Time now);
  void note_return(const Electorate& electorate, const std::string& job);
  [[nodiscard]] Time forgets_at(const std::string& name, const DesertedJobs::Job& job) const;
  std::size_t forget_deserted(Time now);
  [[nodiscard]] bool forgets(const std::string& name, const DesertedJobs::Job& job, Time now);
  [[nodiscard]] bool may_begin(Time now) const;
  void tell_those_who_wait(std::string_view job, Time now);
  // Null: there are too many.
  Electorate* electorate_of(std::string_view job);
  void call_those_who_wait(Time now);
  void begin_if_possible(Time now);
  void note_death(std::uint64_t generation, std::string_view job, const Vote& vote, Time came);
  void tell_of_silence(Time now);

  Options options_;
  KeyTable& table_;
  Stage stage_ = Stage::Serving;
  std::uint64_t generation_ = 1;
  std::map<std::string, Electorate, std::less<>> jobs_;
  std::unordered_map<SessionId, JobVoter> voters_;
  VoterId last_voter_ = 0;
  JobPlaces elsewhere_;

  Time listens_until_ = Time::min();  // of a first store
  SoughtJobs sought_;
  DesertedJobs deserted_;

  // Of a successor.
  std::optional<std::string> job_;
  Applicants waiting_;
  std::uint64_t highest_ = 0;      // generation of those who came
  std::uint64_t last_call_ = 0;    // stamps differ, so that each names its generation
  Time last_proof_ = Time::min();  // of a death: when it came
  Deaths deaths_;
};

}  // namespace drun::store
