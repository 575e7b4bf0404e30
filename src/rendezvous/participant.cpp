#include "rendezvous/participant.hpp"

#include <utility>

#include "base/deadline.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/election.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/leader.hpp"
#include "rendezvous/member.hpp"
#include "rendezvous/outbox.hpp"
#include "rendezvous/stand_delay.hpp"
#include "rendezvous/waiting_report.hpp"

namespace drun::rendezvous {

class Participant::Impl {
 public:
  Impl(Config config, Time now)
      : config_(std::move(config)),
        keys_(config_.run_id),
        member_(config_, keys_, outbox_, now),
        election_(config_, keys_, outbox_),
        report_(config_, outbox_, now) {}

  void on_key_value(const KeyValueEvent& event, Time now) {
    if (const auto* snapshot = std::get_if<WatchSnapshot>(&event)) {
      if (election_.on_snapshot(*snapshot, now)) member_.on_new_leader(now);
      election_.on_look(*snapshot, now);
      member_.on_snapshot(*snapshot);
      if (leader_) leader_->on_snapshot(*snapshot, now);
    } else if (const auto* changes = std::get_if<WatchChanges>(&event)) {
      if (election_.is(changes->watch)) {
        for (const auto& change : changes->changes)
          if (election_.on_value(change.value, now)) member_.on_new_leader(now);
      }
      member_.on_changes(*changes, now);
      if (leader_) leader_->on_changes(*changes, now);
    } else if (const auto* result = std::get_if<CommitResult>(&event)) {
      on_stand_result(*result, now);
      member_.on_commit(*result, now);
      if (leader_) leader_->on_commit(*result, now);
    } else if (const auto* rejected = std::get_if<WatchRejected>(&event)) {
      if (election_.is(rejected->watch) || member_.needs(rejected->watch))
        member_.give_up(std::string(kShowsNoKeys) + ": " + rejected->detail);
      election_.on_rejected(rejected->watch, now);
      if (leader_) leader_->on_watch_rejected(*rejected, now);
    } else if (const auto* renewed = std::get_if<Renewed>(&event)) {
      member_.on_renewed(*renewed);
    } else {
      on_link(std::get<LinkEvent>(event), now);
    }
  }

  void advance(Time now) {
    if (member_.finished()) return;
    election_.look(candidate(), now);
    elect(now);
    member_.lead_until(leader_ ? std::optional(leader_->next_round_from()) : std::nullopt);
    member_.expect_others_until(others_come_until(now));
    // One that goes leaves the next round to the next leader.
    decides_ = leader_ && !member_.has_left(now);
    if (decides_ && member_.rejected()) leader_->note_full_store(now);
    if (decides_) leader_->advance(now);
    if (leader_ && leader_->rejections().over(now)) member_.give_up(leader_->rejections().text());
    member_.advance(now);
    report_.look(view(), now);
  }

  std::optional<Time> next_deadline() const {
    if (member_.finished()) return std::nullopt;
    EarliestDeadline next;
    next.include(member_.next_deadline());
    if (leader_ && decides_) next.include(leader_->next_deadline());
    next.include(election_.next_deadline(candidate()));
    next.include(report_.next_deadline(view()));
    return next.time();
  }

  [[nodiscard]] bool leads() const { return decides_ && leader_ && member_.up(); }
  MemberAgent& member() { return member_; }
  std::vector<Action> take() { return outbox_.take(); }

 private:
  // ---- the connection ----

  void on_link(const LinkEvent& event, Time now) {
    switch (event.link) {
      case Link::Up:
      case Link::NewSession: {
        const bool new_session = event.link == Link::NewSession;
        most_writes_ = event.most_writes;
        if (leader_) leader_->limit_writes(most_writes_);
        member_.on_link_up(event, now);
        if (!member_.up()) return;
        note_generation(event, now);
        if (!election_.begun()) {
          election_.begin(member_.is_host());
          session_since_ = now;
        } else if (new_session) {
          retire();
          election_.on_new_session();
          session_since_ = now;
          session_replaced_ = true;
        }
        break;
      }
      case Link::Down:
        member_.on_link_down(event.detail, event.silent, now);
        lose_link();
        break;
      case Link::Failed:
        member_.on_link_failed(event.detail, now);
        lose_link();
        break;
      case Link::Closed:
        break;
    }
  }

  void note_generation(const LinkEvent& event, Time now) {
    if (event.generation == succession_.generation) return;
    succession_.generation = event.generation;
    if (event.generation > 1) succession_.sure_from = now + event.old_leases;
  }

  // Whether all have come, who does not lead knows from the outcome only.
  std::optional<Time> others_come_until(Time now) const {
    if (leader_ && leader_->state() != nullptr) return leader_->others_come_until(now);
    if (member_.all_heard()) return std::nullopt;
    return now < succession_.sure_from ? std::optional(succession_.sure_from) : std::nullopt;
  }

  void lose_link() {
    election_.on_link_lost();
    if (leader_) leader_->on_link_lost();
  }

  // ---- the election ----

  Election::Candidate candidate() const {
    Election::Candidate result;
    result.stays = member_.up() && !leader_ && !member_.ending();
    const bool closed = member_.round() && member_.round()->phase == Phase::Closed;
    result.stands = result.stays && !member_.leaving() && !closed;
    if (member_.round()) result.epoch = member_.round()->epoch;
    return result;
  }

  void elect(Time now) {
    if (leader_) {
      resign_if_needed();
    } else if (election_.elected() && !member_.ending()) {
      // The watch shows that we are elected before the answer does, or the answer was lost.
      lead(*election_.value(), now);
    }
    Election::Candidate self = candidate();
    if (self.stands) {
      const int nodes = member_.round() ? member_.round()->nodes : 0;
      self.stand_delay = stand_delay(config_, member_.is_host(), nodes, member_.group_rank());
    }
    election_.stand(self, now);
  }

  void on_stand_result(const CommitResult& result, Time now) {
    const auto outcome = election_.on_commit(result, now);
    if (outcome == CommitOutcome::Committed) lead(election_.standing_as(), now);
    if (outcome == CommitOutcome::Unknown) election_.read_again();
    const Rejections& rejections = election_.rejections();
    if (outcome == CommitOutcome::Rejected && rejections.over(now))
      member_.give_up(rejections.text());
  }

  void lead(const std::string& value, Time now) {
    election_.lead(value);
    // If this session is new, it may be one after an outage, or a restart of the store, in which
    // the sessions of the others expired. They get the keep-alive time to come back before they
    // count as lost: until then their workers may run.
    std::optional<Time> grace;
    const bool in_doubt =
        config_.store_can_be_lost || (config_.sessions_can_end_early && session_replaced_);
    if (in_doubt && session_since_ && now < *session_since_ + config_.keep_alive)
      grace = *session_since_ + config_.keep_alive;
    // Who came to a successor says what it runs; how long the others may run is known.
    if (succession_.is_later()) grace.reset();
    std::optional<Time> waiting_since;
    if (member_.waiting()) waiting_since = member_.waiting_since();
    succession_.history = member_.vote().history();
    succession_.settled_era = member_.vote().settled_era();
    leader_ = std::make_unique<Leader>(config_, outbox_, election_.leading_as(), election_.epoch(),
                                       std::move(known_), member_.seen().latest(), grace,
                                       member_.seen().others_until(), waiting_since, succession_,
                                       election_.take_other());
    leader_->limit_writes(most_writes_);
    outbox_.tell({News::What::Leads, config_.ticket, config_.host, ""});
    if (!member_.up()) leader_->on_link_lost();
  }

  void resign_if_needed() {
    if (leader_->deposed()) {
      retire();
      election_.read_again();
    } else if (!leader_->disagreement().empty()) {
      member_.refuse(leader_->disagreement());
      Transaction transaction;
      transaction.guards.push_back({keys_.leader, election_.leading_as()});
      transaction.writes.push_back({keys_.leader, std::nullopt, false});
      outbox_.commit(std::move(transaction));
      retire();
    } else if (election_.has_lost()) {
      retire();
    }
  }

  void retire() {
    if (leader_) known_ = leader_->retire();
    leader_.reset();
  }

  WaitingReport::View view() const {
    WaitingReport::View view;
    view.ending = member_.ending();
    if (member_.waiting()) view.waiting_since = member_.waiting_since();
    view.spare = member_.spare();
    view.up = member_.up();
    view.trouble = &member_.trouble();
    if (member_.round()) view.round = &*member_.round();
    if (leader_) view.state = leader_->state();
    return view;
  }

  const Config config_;
  const Keys keys_;
  Outbox outbox_;
  MemberAgent member_;

  Election election_;
  std::optional<Time> session_since_;  // of the present session
  bool session_replaced_ = false;      // there was one before
  Succession succession_;
  std::unique_ptr<Leader> leader_;
  std::size_t most_writes_ = 0;   // of one transaction that the store takes; 0: it does not say
  bool decides_ = false;          // it has not left
  std::unique_ptr<State> known_;  // from the time when this agent led

  WaitingReport report_;
};

Participant::Participant(Config config, Time now)
    : impl_(std::make_unique<Impl>(std::move(config), now)) {}

Participant::~Participant() = default;

void Participant::on_key_value(const KeyValueEvent& event, Time now) {
  impl_->member().note_time(now);
  impl_->on_key_value(event, now);
  impl_->advance(now);
}

void Participant::on_time(Time now) {
  impl_->member().note_time(now);
  impl_->advance(now);
}

void Participant::on_worker_store_ready(int round, std::uint16_t port, Time now) {
  impl_->member().on_worker_store_ready(round, port);
  on_time(now);
}

void Participant::on_workers_started(int /*round*/, Time now) {
  on_time(now);
}

void Participant::on_workers_succeeded(int round, Time now) {
  impl_->member().on_workers_succeeded(round);
  on_time(now);
}

void Participant::on_workers_failing(int round, Time now) {
  impl_->member().on_workers_failing(round);
  on_time(now);
}

void Participant::leave_last() {
  impl_->member().leave_last();
}

void Participant::on_workers_failed(int round, FailureSummary failure, Time now) {
  impl_->member().on_workers_failed(round, std::move(failure));
  on_time(now);
}

void Participant::on_workers_stopped(Time now, std::string end) {
  impl_->member().on_workers_stopped(std::move(end));
  on_time(now);
}

void Participant::on_workers_stalled(int round, bool stalled, Time now) {
  impl_->member().on_workers_stalled(round, stalled);
  on_time(now);
}

void Participant::on_lease_over(Time now) {
  impl_->member().on_lease_over();
  on_time(now);
}

void Participant::on_stop_requested(std::string reason, int exit_code, Time now) {
  impl_->member().on_stop_requested(std::move(reason), exit_code, now);
  on_time(now);
}

void Participant::on_leave_requested(std::string reason, int exit_code, Time now) {
  impl_->member().on_leave_requested(std::move(reason), exit_code, now);
  on_time(now);
}

bool Participant::leads() const {
  return impl_->leads();
}

void Participant::on_facts(std::string sheet, Time now) {
  impl_->member().on_facts(std::move(sheet));
  on_time(now);
}

bool Participant::dispensable(bool known) const {
  return impl_->member().dispensable(known);
}

bool Participant::between_rounds() const {
  const auto& round = impl_->member().round();
  return round && (round->phase == Phase::Gathering || round->phase == Phase::Preparing);
}

bool Participant::round_stops() const {
  const auto& round = impl_->member().round();
  return round && round->phase == Phase::Stopping;
}

std::vector<Action> Participant::take_actions() {
  return impl_->take();
}

std::optional<Time> Participant::next_deadline() const {
  return impl_->next_deadline();
}

}  // namespace drun::rendezvous
