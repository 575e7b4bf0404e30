// The decision about membership: who takes part in the next round, when a round is stopped, how
// the job ends. Pure: what the leader knows is a State that events change; decide() says what to
// write next, and why; adopt() takes it over once it is in the store. No event costs more than
// O(log nodes); a change of phase costs O(nodes log nodes).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/agreement.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// Group rank 0's node has this long to make the workers' store ready.
inline constexpr Milliseconds kPrepareTimeout{30'000};
// After a node was told to go, no round begins for so long: if the others are told to go as well,
// as by scancel, one after the other, the job is over.
inline constexpr Milliseconds kLeaveWindow{3'000};

enum class Standing {
  Eligible,
  // Asks for the rank of a member that is still there. That may be a dead agent whose session has
  // not expired yet, so this one waits for a while before it is refused.
  Held,
  Leaving,  // was told to go, and takes part in no further round
  Unfit,    // its machine is not like the others': it is there, and never runs
  Refused   // must leave; it may not know yet
};

struct Member {
  MemberDocument document;
  std::uint64_t arrival = 0;
  Standing standing = Standing::Eligible;
  Time since{};         // joined, or held since
  std::string refusal;  // why, when refused
};

// One node's place in the current round, or in the last one that ran.
struct RankSlot {
  std::string host;  // empty: not known
  int group_rank = 0;
  bool succeeded = false;
  bool stalled = false;  // its workers do not make progress
  int failed_as = 0;     // the first, the second ... node whose workers failed; 0: they have not
  bool lost = false;     // its agent was gone before it had left the round
  bool told = false;     // to go: if it is lost, that is no fault
  bool missing = false;  // not back yet after an outage in which this leader lost its session, too
};

struct Failure {
  std::string ticket;
  FailureSummary summary;
  int as = 0;  // see RankSlot::failed_as
};

// Which of the stores that succeed one another this is.
struct Succession {
  std::int64_t generation = 0;  // 0: it has no successors
  // A later one: workers that an earlier store let run have ended by then.
  Time sure_from{};

  // What this agent has kept of the one of an earlier store.
  History history{};
  // Of the last settled round that the store has told of; 0: of none.
  std::int64_t settled_era = 0;

  // Not the first: what the store does not know may have been known to one before.
  [[nodiscard]] bool is_later() const { return generation > 1; }
};

struct Planned {
  std::string ticket;
  Assignment assignment;
};

// What the leader knows. Change it only through the functions below: the counts belong to the rest.
struct State {
  explicit State(Keys job_keys) : keys(std::move(job_keys)) {}

  Keys keys;
  std::int64_t epoch = 0;  // of this leadership
  std::map<std::string, std::string> agreement;
  bool job_written = false;
  RoundDocument round;          // as it is in the store
  History history;              // as it is in the store
  bool history_written = true;  // false: it has none, or not this one
  bool round_written = false;   // false: the store has none, write it with the next decision
  bool latest_written = true;   // what it says of `latest` is out of date otherwise
  int floor = 0;                // a member knows of this round: new ones have higher numbers
  int restarts_floor = 0;       // a member knows of so many
  int losses_floor = 0;

  std::map<std::string, Member, std::less<>> members;  // by ticket
  std::map<std::string, std::string, std::less<>>
      facts;  // what the nodes say of themselves, by ticket
  std::map<std::string, RankSlot, std::less<>> slots;  // by ticket
  // Whose agents have died: by ticket, and by round and group rank.
  std::set<std::string, std::less<>> deaths;
  std::set<std::pair<int, int>> dead_places;
  int vacant = 0;                               // places of the round whose holders are not known
  std::set<int> occupied;                       // group ranks of `slots`, while some are vacant
  std::optional<Assignment> known_place;        // one of `slots`, while some are vacant
  std::map<std::string, Assignment> reclaimed;  // places the store forgot, to be written again
  // Group ranks in the running round that the store forgot and their nodes have not said again:
  // this agent knows them, from when it led.
  std::map<std::string, int, std::less<>> recalled;
  std::map<int, std::string> rank_holders;             // asked-for rank -> eligible member
  std::set<std::string, std::less<>> held;             // tickets that are Held
  std::set<std::string, std::less<>> to_refuse;        // refused, but not written yet
  std::set<std::string, std::less<>> assignment_keys;  // tickets with an assignment in the store
  std::vector<Planned> plan;                           // while Preparing, by group rank
  std::set<std::string, std::less<>> planned;          // its tickets
  bool plan_broken = false;                            // a planned member has gone
  std::vector<std::string> refusals;                   // the last few reasons, for the time-out
  std::string other_jobs;                              // on the same store, as text
  // In the current round, as reported: first that of the node that said first that it fails or,
  // once the round is being stopped for another, that one.
  std::vector<Failure> failures;
  int failing = 0;        // nodes of which a worker has failed
  std::set<int> awaited;  // RankSlot::failed_as of those that have not reported how
  std::set<std::string, std::less<>> failed;  // their tickets
  int failed_ranks = 0;                       // in all of them
  Time failed_since{};                        // the first one
  std::optional<StopRequest> stop;            // of the first agent that was asked to stop
  std::optional<StopRequest>
      leave;  // of the first agent that was asked to go, since the last round
  std::uint64_t arrivals = 0;

  // Eligible members, by what they can do now.
  int ready = 0;    // hold no workers and were not told to stop: can start
  int joiners = 0;  // of these, without a place in the current round
  int unleft = 0;   // places whose agent is there and has not left the round
  // Members: those that may take part in a further round, and those that were told to go.
  int staying = 0, leaving = 0;
  int early = 0;      // places whose agent has left the running round without a result
  int holding = 0;    // that still hold workers
  int strangers = 0;  // of these, workers of another round that has the present one's number
  int succeeded = 0, stalled = 0, lost = 0, missing = 0;  // places

  std::optional<Time> last_success;   // of a node, in any round
  std::optional<Time> last_join;      // nullopt: long ago, or before the round began
  std::optional<Time> enough_since;   // ready >= min
  std::optional<Time> joiners_since;  // joiners > 0
  std::optional<Time> holding_since;  // holding > 0 while gathering
  std::optional<Time> waiting_since;  // no round runs
  std::optional<Time> stopping_since;
  std::optional<Time> tried_at;  // the store took a write, before nodes are left behind
  std::optional<Time> preparing_since;
  std::optional<Time> leave_until;  // no round begins before
  std::optional<Time> grace_until;  // missing places are waited for until then
  // A round ran whose members are not known here: until then nodes that are out of touch may have
  // workers of it.
  std::optional<Time> unsure_until;
  Succession succession;
  // Of the first rounds of two first stores one at most was settled, and ran; which, a leader may
  // not know. The last place of each origin but that of `round.latest`, unless that is of a later
  // generation. The next round comes after all of them.
  std::vector<Place> others;
  // At a later store: ranks of `round.latest` and of `others` of which nobody has said yet what
  // becomes of them, each as a place without nodes. Until all have, or until the leases of an
  // earlier store are over, they may have workers.
  std::set<Place> unheard;
  std::optional<Time> next_progress;  // gathering: publish what has changed not before this
  Milliseconds progress_interval{0};
  bool progress_due = false;

  // The same rank failing for the same cause soon after every start.
  int crashes = 0;
  int crash_rank = -1;
  std::string crash_cause;
};

// What is written next, in one transaction, and what it means. Nothing to do when `writes` is
// empty.
struct Decision {
  std::vector<Write> writes;
  std::vector<std::string> log;
  std::vector<News> news;
  std::optional<History> history;  // if it has changed
  std::string stopping;            // not empty: stops the round, for this reason
  std::string root;                // not empty: for the failure of the node with this ticket
  RoundDocument round;
  bool tries = false;  // writes it whether it has changed or not, to see whether the store takes it
  std::vector<Planned> plan;                   // when the round is now Preparing
  std::map<std::string, std::string> refused;  // ticket -> reason
  std::vector<std::string> unfit;              // tickets that never run
  std::vector<SetAside> set_aside;             // that are so from now on, or cleared
  std::vector<std::string> dropped;            // tickets whose assignment is deleted
  std::vector<std::string> reclaimed;          // tickets whose assignment is written again
  std::optional<Outcome> outcome;
};

// Events. `problem` when the document could not be read: it names the member as far as known. A new
// one is refused for it; of one that is known, the last document that could be read counts.
void observe(State& state, const Config& config, const std::string& ticket, MemberDocument document,
             Time now, const std::string& problem = {});
void forget(State& state, const Config& config, const std::string& ticket, Time now);

// The workers of this place are proven to be gone.
void note_gone(State& state, const Place& place, Time now);
// The helpers of this member have said that its agent has died, and its workers with it: its
// session ends with that.
void note_death(State& state, const std::string& ticket);
// One of both is known of it.
[[nodiscard]] bool has_died(const State& state, std::string_view ticket);

// Nobody could say just now that it has stopped its workers: the store takes no writes.
void give_time_to_stop(State& state, Time now);

// Why the document's numbers cannot be, in a job whose round is `known`; empty if they can. A
// number that lies far ahead is no news of a later round but a mistake, or malice: the next round's
// would have to be higher still.
[[nodiscard]] std::string impossible(const RoundDocument& known, const MemberDocument& document);

// To go, by a signal: one that goes because it has lost its guardian is as good as lost.
[[nodiscard]] bool was_told(const Member& member);

// Where the workers' store of its round is.
[[nodiscard]] std::string master(const Assignment& place);

// Two rounds with one number, which began without knowing of each other.
[[nodiscard]] bool is_another(const RoundDocument& a, const RoundDocument& b);

// Workers of it may run.
[[nodiscard]] bool holds_workers(const MemberDocument& document);

// The member runs workers of a round of which neither the store nor this leader knew: the store was
// set back or emptied, and the leader of that round is gone. restore() takes the round up.
[[nodiscard]] bool claims_unknown_round(const RoundDocument& known, const MemberDocument& document);

// This leader does not know yet of the round that a member speaks of, nor of one after it.
// `latest`: as in the round's document, or as that is being written.
[[nodiscard]] bool is_unknown(const State& state, const Place& latest, const Place& said);

// From when on the quiet period counts after this member has come. Those of a job whose store was
// lost all come at once, and are waited for a moment only.
[[nodiscard]] Time join_counts_from(const State& state, const Config& config,
                                    const MemberDocument& document, Time now);

[[nodiscard]] Decision decide(const State& state, const Config& config, Time now);
// Takes over a decision that has been written, or at once one without writes.
void adopt(State& state, const Config& config, const Decision& decision, Time now);
// When decide() may decide something else than now, if nothing happens.
[[nodiscard]] std::optional<Time> next_deadline(const State& state, const Config& config);

// What a new leader finds: the state from all keys of the job. `previous` is what this agent knew
// when it led before, or null; `seen` the latest round that it has ever seen, which the store may
// have forgotten. Places without an agent are lost, or missing until `grace_until`
// if that is given. If the store is behind what is known, there is always such a grace: until the
// members have written again, what they hold is not known either. `others_until`: until then nodes
// that nobody here knows may have workers, of a round beside `seen`. At a later store of several
// that succeed one another, nodes that are not there are waited for only until all of the last
// round are accounted for: there, or proven to be gone. `problems` gets a line for each document
// that could not be read.
[[nodiscard]] State restore(const Config& config, std::int64_t epoch,
                            const std::vector<Change>& entries, const State* previous,
                            const RoundDocument& seen, std::optional<Time> grace_until,
                            std::optional<Time> others_until, Time now,
                            std::vector<std::string>& problems, const Succession& succession = {});

// The failure of this node, if there is one, is the root cause: of its rank that find_root() meant.
void put_first(std::vector<Failure>& failures, const std::string& ticket);

// Counts afresh, from members and places: after these were changed by hand.
void recount(State& state, const Config& config, Time now);

// How long a member that asks for a taken rank is held before it is refused. The session of a dead
// agent lives no longer than this, so a rank that is still taken then has a living holder. The wait
// ends earlier if the time to join is over earlier.
[[nodiscard]] Milliseconds duplicate_grace(const Config& config);

}  // namespace drun::rendezvous
