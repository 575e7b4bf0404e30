#include "simulation/checker.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rendezvous/membership.hpp"

namespace drun::simulation {

using namespace rendezvous;

namespace {

// Between the limit at which an agent gives up and the end of its workers, with some delay.
constexpr Milliseconds kSlack{1'500};
// Beyond the keep-alive limit: the session's last two seconds, and who stands for leader when.
constexpr Milliseconds kElection{3'000};
// Between two attempts to write to a full store.
constexpr Milliseconds kLongestPause{5'000};
// One that was turned away by a full store has asked it again after this time.
constexpr Milliseconds kAskedAgain{7'000};
// An agent that was told to stop waits so long for the leader.
constexpr Milliseconds kStopWait{5'000};
// Requests of one node to a full store, in a second: its own, and a leader's, with growing pauses.
constexpr std::size_t kEnough = 12;

// Two rounds may have one number.
bool is_same_round(const Assignment& a, const Assignment& b) {
  return a.round == b.round && a.master_address == b.master_address &&
         a.master_port == b.master_port && a.world_size == b.world_size;
}

}  // namespace

Checker::Checker(const Plan& plan, const Scheduler& scheduler, const Network& network,
                 const std::vector<std::unique_ptr<Node>>& nodes)
    : plan_(plan), scheduler_(scheduler), network_(network), nodes_(nodes), keys_("job") {}

int Checker::ms() const {
  return static_cast<int>(std::chrono::duration_cast<Milliseconds>(
                              scheduler_.now().time_since_epoch() - std::chrono::hours(1))
                              .count());
}

void Checker::fail(std::string what) {
  if (violation_.empty()) violation_ = "at " + std::to_string(ms()) + " ms: " + std::move(what);
}

const Node* Checker::find(const std::string& ticket) const {
  for (const auto& node : nodes_) {
    if (node->config.ticket == ticket) return node.get();
  }
  return nullptr;
}

// A seat whose agent has lost its session since the round was planned, or shortly before, so that
// the leader could not know.
bool Checker::lost_a_node(const Round& round) const {
  const Time known = round.planned - Milliseconds(plan_.max_delay_ms * 2 + 50);
  return std::any_of(round.seats.begin(), round.seats.end(), [&](const auto& seat) {
    const Node& node = *nodes_[static_cast<std::size_t>(seat.second.node)];
    // A store that was set back shows as members those that died meanwhile, and has no place for
    // those that had not started yet.
    if (set_back_ && (!node.workers || !(*node.workers == seat.second.assignment))) return true;
    return node.session_ended > known || has_said_leave_.contains(node.number) ||
           !network_.alive(seat.second.session) ||
           network_.session(seat.second.node) != seat.second.session;
  });
}

// When the node said that it goes, or must have: its last write and the answer come first.
std::optional<Time> Checker::said_leave(const Node& node) const {
  const bool untroubled = !node.was_in_trouble && !store_failed_;
  std::optional<Time> said = node.leave_said;
  if (untroubled && node.told_to_go && node.registered && !node.told_to_stop) {
    const Time at_latest =
        std::max(*node.told_to_go, *node.registered) + Milliseconds(plan_.max_delay_ms * 3);
    said = std::min(said.value_or(at_latest), at_latest);
  }
  return said;
}

// Whoever wrote this knew that the node goes: what a leader has sent before it hears of it still
// takes effect, part after part.
bool Checker::knew_of_leave(const Node& writer, const Node& node) const {
  const auto said = said_leave(node);
  if (!said || writer.was_in_trouble) return false;
  return *said + writing_time() < scheduler_.now();
}

// From the moment at which a leader could have heard of something until a decision that it made
// before is in the store.
Milliseconds Checker::writing_time() const {
  const int most = static_cast<int>(nodes_.size()) + 3;
  const int parts = plan_.keys_per_request == 0 ? 1 : (most - 1) / plan_.keys_per_request + 1;
  return Milliseconds(plan_.max_delay_ms * 2 * parts);
}

// All have left the round.
void Checker::note_end(const Node& writer, Round& round) {
  round.over = scheduler_.now();
  round.lost_a_node = lost_a_node(round);
  round.spared = std::any_of(round.seats.begin(), round.seats.end(), [&](const auto& seat) {
    const Node& node = *nodes_[static_cast<std::size_t>(seat.second.node)];
    return !round.succeeded.contains(node.number) && knew_of_leave(writer, node);
  });
}

// The leader decides before that is in the store.
bool Checker::is_brief(const Round& round) const {
  if (!round.stopped || round.cause == Cause::None || round.cause == Cause::Resize) return false;
  // What a leader that hung for a while had decided was written long after, and it knows when.
  if (round.leader >= 0 && nodes_[static_cast<std::size_t>(round.leader)]->was_in_trouble)
    return false;
  return *round.stopped - round.began + writing_time() + kSlack <
         Milliseconds(plan_.min_runtime_ms);
}

bool Checker::may_be_brief(const Round& round) const {
  if (plan_.min_runtime_ms == 0 || round.cause == Cause::Resize) return false;
  // What a leader that is busy or cut off has decided may be written long after.
  const bool trouble = std::any_of(nodes_.begin(), nodes_.end(),
                                   [](const auto& node) { return node->was_in_trouble; });
  return trouble || !round.stopped ||
         *round.stopped - round.began <
             Milliseconds(plan_.min_runtime_ms) + writing_time() * 2 + kSlack;
}

void Checker::on_applied(int writer, const Transaction& transaction) {
  for (const auto& write : transaction.writes) {
    if (write.key == keys_.round && write.value) {
      // Only who holds the leader key may write it.
      if (const Node* who = leader(); who == nullptr || who->number != writer)
        fail("node " + std::to_string(writer) + " wrote the round without leading");
      const auto document = decode_round(*write.value);
      if (!document) return fail(document.error().what());
      if ((forgetful_ || set_back_) && document->phase == Phase::Running &&
          last_phase_ == Phase::Preparing) {
        // Its leader does not know of the later ones: the numbers may begin again.
        const auto first = rounds_.upper_bound(last_ran_);
        for (auto round = first; round != rounds_.end(); ++round)
          forgotten_.insert(*round);
        rounds_.erase(first, rounds_.end());
        started_ = std::min(started_, document->number);
      }
      if (document->phase == Phase::Running && !rounds_.contains(document->number))
        check_round(*nodes_[static_cast<std::size_t>(writer)], *document);
      if (document->phase == Phase::Stopping && last_phase_ == Phase::Running)
        check_stop(*document);
      if (document->phase == Phase::Preparing && last_phase_ != Phase::Preparing)
        planned_ = scheduler_.now();
      if (last_phase_ == Phase::Running && document->phase != Phase::Running) {
        ran_until_ = scheduler_.now();
        if (const auto at = rounds_.find(document->number); at != rounds_.end()) {
          at->second.stopped = ran_until_;
          at->second.cause = document->cause;
        }
      }
      // The next round may be planned in the same step.
      if (!is_alive(document->phase) && !rounds_.empty() && !rounds_.rbegin()->second.over)
        note_end(*nodes_[static_cast<std::size_t>(writer)], rounds_.rbegin()->second);
      last_phase_ = document->phase;
      last_ran_ = document->ran;
    }
    if ((forgetful_ || set_back_) && write.value && write.key.starts_with(keys_.assignments))
      note_place(write.key.substr(keys_.assignments.size()), *write.value);
    Node& node = *nodes_[static_cast<std::size_t>(writer)];
    if (write.value && write.key.starts_with(keys_.assignments))
      note_refusal(node, write.key.substr(keys_.assignments.size()), *write.value);
    if (write.key == keys_.member(node.config.ticket)) {
      if (!node.registered) node.registered = scheduler_.now();
      if (node.said < node.link_up) node.said = scheduler_.now();
      const auto document = write.value ? decode_member(*write.value) : Result<MemberDocument>();
      if (document && document->stop) asked_to_end_.insert(writer);
      if (document && document->leave) {
        has_said_leave_.insert(writer);
        if (!node.leave_said) {
          node.leave_said = scheduler_.now();
          node.leave_heard = leader() != nullptr && long_before(led_since_, scheduler_.now()) &&
                             !refused_.contains(node.config.ticket);
        }
      }
      if (document && document->failure && document->failure->hung)
        if (const auto at = rounds_.find(document->failed); at != rounds_.end())
          at->second.told_hangs.try_emplace(writer,
                                            ToldHang{scheduler_.now(), document->failure->clue});
      if (document) note_forgotten(node, *document);
      silent_.erase(writer);
    }
    if (write.key == keys_.leader && write.value) {
      led_since_ = scheduler_.now();
      elected_ = &node;
    }
    if (write.key == keys_.outcome) {
      auto outcome = write.value ? decode_outcome(*write.value) : Result<Outcome>();
      if (!outcome) return fail("the outcome was damaged or deleted");
      if (outcome_ && !(*outcome_ == *outcome)) {
        if (!forgetful_ && !set_back_) fail("the outcome was changed");
        forgotten_outcomes_.push_back(*outcome_);
      }
      outcome_ = std::move(*outcome);
      ended_ = scheduler_.now();
      check_outcome(nodes_[static_cast<std::size_t>(writer)]->config.ticket);
    }
  }
}

// A leader that takes up a round of which the store knew nothing writes its places again as their
// nodes come back.
void Checker::note_place(const std::string& ticket, const std::string& value) {
  const auto place = decode_assignment(value);
  if (!place || !place->go) return;
  const auto round = rounds_.find(place->assignment.round);
  const Node* node = find(ticket);
  if (round == rounds_.end() || node == nullptr) return;
  Seat& seat = round->second.seats.try_emplace(ticket).first->second;
  if (seat.node < 0) {
    seat.assignment = place->assignment;
    seat.session = network_.session(node->number);
    seat.node = node->number;
  }
  if (!(seat.assignment == place->assignment)) return;
  seat.written = scheduler_.now();
  seat.lost.reset();
}

// It tells of one round only: nobody may know of another that the store has forgotten, too.
void Checker::note_forgotten(const Node& node, const MemberDocument& document) {
  if ((!forgetful_ && !set_back_) || !holds_workers(document)) return;
  const bool published = is_published(node, *document.claim);
  strangers_ |= !published;
  if (published && !rounds_.at(document.claim->round).seats.at(node.config.ticket).lost) return;
  const auto known =
      std::any_of(told_of_forgotten_.begin(), told_of_forgotten_.end(),
                  [&](const auto& told) { return is_same_round(told.first, *document.claim); });
  if (!known) told_of_forgotten_.emplace_back(*document.claim, scheduler_.now());
}

// Before a leader leaves nodes behind that do not stop it looks once whether the store takes
// something, which may be full after that.
void Checker::note_refusal(const Node& writer, const std::string& ticket,
                           const std::string& value) {
  const auto word = decode_assignment(value);
  if (!word || word->refused.empty()) return;
  refused_.insert(ticket);
  // It is no node of the job any more, so nobody waits for what it said, unless that came long
  // before.
  for (const auto& node : nodes_)
    if (node->config.ticket == ticket && !knew_of_leave(writer, *node)) node->leave_heard = false;
  if (word->refused.find("did not stop") != std::string::npos) expelled_.insert(ticket);
  const bool tried = !writer.was_in_trouble &&
                     scheduler_.now() >= full_since_ + kAskedAgain + kSlack + writing_time() * 2;
  if (!tried || word->refused.find("did not stop") == std::string::npos)
    refused_in_doubt_.insert(ticket);
}

// An agent that is out of touch acts on what it has heard before.
bool Checker::was_given(const Node& node, const Assignment& place) const {
  if (network_.alive(network_.session(node.number))) return false;
  const auto [first, last] = forgotten_.equal_range(place.round);
  return std::any_of(first, last, [&](const auto& round) {
    const auto seat = round.second.seats.find(node.config.ticket);
    return seat != round.second.seats.end() && seat->second.assignment == place;
  });
}

void Checker::check_round(const Node& writer, const RoundDocument& document) {
  const std::string name = "round " + std::to_string(document.number);
  Round round;
  round.nodes = document.nodes;
  round.restart_count = document.restart_count;
  round.losses = document.losses;
  round.planned = planned_;
  round.leader = writer.number;
  round.began = scheduler_.now();
  std::vector<const Assignment*> by_rank(static_cast<std::size_t>(document.nodes), nullptr);
  for (const auto& [key, value] : network_.store().keys()) {
    if (key.compare(0, keys_.assignments.size(), keys_.assignments) != 0) continue;
    const auto place = decode_assignment(value.text);
    if (!place) return fail(place.error().what());
    if (!place->go || place->assignment.round != document.number) continue;
    const auto ticket = key.substr(keys_.assignments.size());
    const Node* node = find(ticket);
    if (node == nullptr) return fail(name + ": a place for nobody");
    auto& seat = round.seats[ticket];
    seat.assignment = place->assignment;
    seat.session = network_.session(node->number);
    seat.node = node->number;
    seat.written = scheduler_.now();
    const auto rank = static_cast<std::size_t>(place->assignment.group_rank);
    if (rank >= by_rank.size()) return fail(name + ": a group rank beyond the nodes");
    if (by_rank[rank] != nullptr) return fail(name + ": a group rank given twice");
    by_rank[rank] = &seat.assignment;
  }
  if (!forgetful_ || !rounds_.empty()) {
    if (document.nodes < plan_.min_nodes || document.nodes > plan_.max_nodes ||
        document.nodes % plan_.node_step != 0)
      fail(name + ": " + std::to_string(document.nodes) + " nodes");
    int first_rank = 0;
    for (const auto* a : by_rank) {
      if (a == nullptr) return document.unsure ? void() : fail(name + ": a group rank is missing");
      if (a->first_rank != first_rank) fail(name + ": ranks are not contiguous");
      const auto& front = *by_rank.front();
      if (a->world_size != document.world_size || a->group_world_size != document.nodes ||
          a->master_address != front.master_address || a->master_port != front.master_port ||
          (a->restart_count != document.restart_count && !forgetful_ && !set_back_))
        fail(name + ": the nodes do not agree on the world");
      for (const auto& [ticket, seat] : round.seats) {
        if (&seat.assignment == a) first_rank += find(ticket)->config.local_world_size;
      }
    }
    if (first_rank != document.world_size) fail(name + ": the world is not the sum of its nodes");
  }

  if (!rounds_.empty()) {
    const auto& [number, before] = *rounds_.rbegin();
    if (document.number <= number) fail(name + " comes after a later one");
    // What is known of the round before that may have been forgotten, and only its members tell.
    const bool known = number == last_ran_ || !set_back_;
    if (!forgetful_ && known) {
      const int spent = document.restart_count - before.restart_count;
      const bool left_behind =
          std::any_of(before.seats.begin(), before.seats.end(),
                      [this](const auto& seat) { return expelled_.contains(seat.first); });
      // A store that was set back may show as members those that died meanwhile.
      const bool due = !before.failed.empty() && !before.lost_a_node && !left_behind && !set_back_;
      check_leaves(writer, before, round, document.number);
      const bool may_be_brief = this->may_be_brief(before);
      if (spent == 1 && before.spared && !may_be_brief)
        fail(name + ": a restart spent though a node was told to go");
      // Restarts of rounds that nobody knew of when the round before this began.
      const bool recalled =
          std::any_of(forgotten_.begin(), forgotten_.end(), [&](const auto& forgotten) {
            return forgotten.second.restart_count >= document.restart_count - 1;
          });
      if (spent < 0 || (spent > 1 && !recalled)) fail(name + ": the restart counter jumps");
      if (spent == 1 && before.failed.empty() && !recalled && !may_be_brief)
        fail(name + ": a restart spent without a failure");
      if (spent == 0 && is_brief(before) && !set_back_)
        fail(name + ": the round before was brief, and cost no restart");
      if (spent == 0 && due) fail(name + ": a failure that cost no restart");
      check_order(before, round, document.number);
      check_network(before, round, document.number);
    }
  }
  for (const auto& [ticket, seat] : round.seats) {
    const Node& node = *nodes_[static_cast<std::size_t>(seat.node)];
    if (node.restart_count > document.restart_count)
      fail(name + ": the restart counter goes back to " + std::to_string(document.restart_count) +
           ", node " + std::to_string(node.number) + " had " + std::to_string(node.restart_count));
    if (known_losses_[seat.node] > document.losses)
      fail(name + ": the count of losses goes back to " + std::to_string(document.losses) +
           ", node " + std::to_string(node.number) + " knew of " +
           std::to_string(known_losses_[seat.node]));
  }
  if (document.restart_count > plan_.max_restarts) fail(name + ": more restarts than allowed");
  // What a leader has decided before it hears of it still takes effect: late, if it was busy or cut
  // off, and even after its death.
  for (const auto& [told, since] : told_of_forgotten_)
    if (writer.running &&
        std::max({since, writer.awake, writer.linked}) + writing_time() < scheduler_.now())
      round.warned.push_back(told);
  rounds_.emplace(document.number, std::move(round));
}

// Nodes below one switch are neighbours, and those of before keep their ranks if nobody has come or
// gone.
void Checker::check_network(const Round& before, const Round& after, int number) {
  if (plan_.rank_order != RankOrder::Topology || plan_.asked_ranks) return;
  std::map<int, std::string> places;
  bool same = before.seats.size() == after.seats.size();
  for (const auto& [ticket, seat] : after.seats) {
    places[seat.assignment.group_rank] = find(ticket)->config.network;
    const auto then = before.seats.find(ticket);
    same = same && then != before.seats.end() &&
           then->second.assignment.group_rank == seat.assignment.group_rank;
  }
  const bool known = std::all_of(after.seats.begin(), after.seats.end(), [&](const auto& seat) {
    return before.seats.contains(seat.first);
  });
  if (known && before.seats.size() == after.seats.size() && !same && !set_back_)
    fail("round " + std::to_string(number) + ": the same nodes have other ranks");
  std::set<std::string> done;
  std::string last = "nowhere";
  for (const auto& [rank, place] : places) {
    if (place != last && !done.insert(place).second)
      fail("round " + std::to_string(number) + ": " + place + " is torn apart");
    last = place;
  }
}

// Survivors keep their order, and their rank where the round has not shrunk.
void Checker::check_order(const Round& before, const Round& after, int number) {
  if (plan_.asked_ranks) {
    for (const auto& [ticket, seat] : after.seats) {
      const auto asked = find(ticket)->config.node_rank;
      if (after.nodes == plan_.max_nodes && asked && seat.assignment.group_rank != *asked)
        fail("round " + std::to_string(number) + ": an asked-for rank was not given");
    }
    return;
  }
  if (plan_.rank_order != RankOrder::Keep) return;
  std::vector<std::pair<int, int>> ranks;
  for (const auto& [ticket, seat] : before.seats) {
    const auto now = after.seats.find(ticket);
    // A store that was set back may show those that died meanwhile, as they were, and has no place
    // for those that had not started yet.
    if (set_back_ && (silent_.contains(seat.node) || !before.started.contains(seat.node))) continue;
    if (now != after.seats.end())
      ranks.emplace_back(seat.assignment.group_rank, now->second.assignment.group_rank);
  }
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0 && ranks[i].second <= ranks[i - 1].second)
      fail("round " + std::to_string(number) + ": survivors changed their order");
    if (after.nodes >= before.nodes && ranks[i].first != ranks[i].second)
      fail("round " + std::to_string(number) + ": a survivor changed its rank");
  }
}

bool Checker::long_before(std::optional<Time> time, Time other) const {
  return time && *time + Milliseconds(plan_.max_delay_ms * 2 + 50) < other;
}

// Nobody that was told to go is taken in, and no round begins while others may be told, too.
void Checker::check_leaves(const Node& writer, const Round& before, const Round& after,
                           int number) {
  const std::string name = "round " + std::to_string(number);
  for (const auto& [ticket, seat] : after.seats) {
    const Node& node = *find(ticket);
    if (knew_of_leave(writer, node))
      fail(name + " has node " + std::to_string(node.number) + ", which was told to go");
  }
  if (!cancelled_ || nodes_.size() != cancelled_nodes_ || store_failed_) return;
  const bool trouble = std::any_of(nodes_.begin(), nodes_.end(),
                                   [](const auto& node) { return node->was_in_trouble; });
  // The first that is told may be told late. What was said while nobody led may be gone with who
  // said it when the next leader comes.
  std::optional<Time> first;
  for (const auto& node : nodes_) {
    if (node->told_to_go >= cancelled_ && node->leave_heard &&
        (!first || *node->leave_said < *first))
      first = node->leave_said;
  }
  if (!trouble && long_before(first, after.planned) && after.planned > *cancelled_ &&
      before.seats.size() > 0)
    fail(name + " begins though all are told to go");
}

void Checker::on_cancel() {
  if (cancelled_) return;
  cancelled_ = scheduler_.now();
  cancelled_nodes_ = nodes_.size();
}

// A round is stopped for a reason.
void Checker::check_stop(const RoundDocument& document) {
  const auto at = rounds_.find(document.number);
  if (at == rounds_.end() || forgetful_) return;
  const Round& round = at->second;
  const std::string name = "round " + std::to_string(document.number);
  if (document.cause == Cause::Failure && round.failed.empty())
    fail(name + " was stopped for a failure that was not");
  // Or others have workers of a round that the store has forgotten, and say so.
  const bool strangers = strangers_ || !forgotten_.empty();
  if (document.cause == Cause::Membership && !lost_a_node(round) && !strangers)
    fail(name + " was stopped for a loss that was not");
  if (document.cause == Cause::Resize &&
      (round.nodes >= plan_.max_nodes || plan_.resize != Resize::Now))
    fail(name + " was stopped for a spare");
  // Whole steps only make it larger. One that has died since may have been counted.
  const auto others = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return node->registered && !round.seats.contains(node->config.ticket);
  });
  if (document.cause == Cause::Resize && others < plan_.node_step)
    fail(name + " was stopped for less than a step");
  if (document.cause != Cause::Failure) return;
  at->second.root = document.root;
  if (is_calm(round)) check_hang_stop(round, document.root);
}

bool Checker::is_calm(const Round& round) const {
  const bool busy = std::any_of(plan_.steps.begin(), plan_.steps.end(), [](const Step& step) {
    return step.fault == Fault::Busy || step.fault == Fault::StoreFull;
  });
  const bool trouble = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node->running || node->was_in_trouble || node->told_to_stop || node->told_to_go;
  });
  return !busy && !trouble && !store_failed_ && !set_back_ && !strangers_ && forgotten_.empty() &&
         !lost_a_node(round);
}

// Which node noticed first says nothing: the others have their time to tell, and who is behind is
// the root cause.
void Checker::check_hang_stop(const Round& round, const std::string& root) {
  if (round.told_hangs.empty() || round.failed != round.hung) return;
  const int heard = static_cast<int>(round.told_hangs.size() + round.succeeded.size());
  Time first = Time::max();
  Time until = Time::max();
  bool behind = false;
  for (const auto& [node, told] : round.told_hangs) {
    first = std::min(first, told.at);
    behind |= told.clue.behind && long_before(told.at + writing_time(), scheduler_.now());
  }
  for (const auto& [node, told] : round.told_hangs)
    until = std::min(until, first + told.clue.others_within);
  if (round.nodes > 1 && heard < round.nodes && scheduler_.now() < until)
    fail("a round was stopped for a hang before all nodes could tell of theirs");
  const Node* blamed = find(root);
  const auto told =
      blamed == nullptr ? round.told_hangs.end() : round.told_hangs.find(blamed->number);
  if (behind && (told == round.told_hangs.end() || !told->second.clue.behind))
    fail("a rank is behind, and another one is to blame");
}

void Checker::check_outcome(const std::string& writer) {
  if (forgetful_ || !forgotten_.empty()) return;
  if (outcome_->end == End::Success) {
    if (rounds_.empty()) return fail("success without a round");
    const Round& last = rounds_.rbegin()->second;
    if (static_cast<int>(last.succeeded.size()) != last.nodes)
      fail("success, but only " + std::to_string(last.succeeded.size()) + " of " +
           std::to_string(last.nodes) + " nodes have succeeded");
  }
  if (outcome_->end == End::Failure) {
    if (rounds_.empty()) return fail("failure without a round");
    const Round& last = rounds_.rbegin()->second;
    if (last.failed.empty()) fail("a failure that nobody reported");
    if (last.restart_count < plan_.max_restarts) fail("failed with restarts left");
    if (!outcome_->failure || outcome_->exit_code != outcome_->failure->shell_code())
      fail("the exit code is not the root cause's");
    const auto root = last.seats.find(last.root);
    if (outcome_->failure && root != last.seats.end() && is_calm(last) &&
        outcome_->failure->group_rank != root->second.assignment.group_rank)
      fail("the job ends for another failure than its last round");
  }
  if (outcome_->end == End::NodesLost) {
    const bool brief = !rounds_.empty() && may_be_brief(rounds_.rbegin()->second);
    if (brief && rounds_.rbegin()->second.restart_count >= plan_.max_restarts) return;
    if (!plan_.max_losses) return fail("ended for its losses, of which any number is allowed");
    const auto lost = std::count_if(rounds_.begin(), rounds_.end(), [&](const auto& round) {
      return round.second.over ? round.second.lost_a_node : lost_a_node(round.second);
    });
    if (lost <= *plan_.max_losses && !set_back_)
      fail("ended for more losses than there were: " + std::to_string(lost));
  }
  // Who waits for nodes has its whole time for it, after each round that it was in anew: unless it
  // was suspended or busy, and has never heard of the round.
  const auto was_in = [this, &writer](const Round& round) {
    const auto seat = round.seats.find(writer);
    return seat != round.seats.end() &&
           (round.started.contains(seat->second.node) || !find(writer)->was_in_trouble);
  };
  if (outcome_->end == End::Timeout && ran_until_ && !store_failed_ && !rounds_.empty() &&
      was_in(rounds_.rbegin()->second) &&
      scheduler_.now() + kSlack < *ran_until_ + Milliseconds(plan_.join_timeout_ms))
    fail("timed out " + std::to_string((scheduler_.now() - *ran_until_) / Milliseconds(1)) +
         " ms after the last round");
  if (outcome_->end != End::Stopped ||
      std::any_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->told_to_stop; }))
    return;
  if (std::none_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->told_to_go; }))
    return fail("stopped, though nobody was told to");
  // What it decided before others came may have been on its way for long.
  if (const Node* who = find(writer); who == nullptr || who->was_in_trouble) return;
  for (const auto& node : nodes_) {
    const bool in_touch = !node->was_in_trouble && network_.alive(network_.session(node->number));
    if (node->running && !node->outcome && !node->told_to_go && !node->slow_stop && in_touch &&
        !plan_.asked_ranks && !store_failed_ && long_before(node->registered, scheduler_.now()))
      fail("stopped, though node " + std::to_string(node->number) + " was not told to");
  }
}

void Checker::on_failure_reported(int node, int round, bool hung) {
  const auto at = rounds_.find(round);
  if (at == rounds_.end()) return;
  at->second.failed.insert(node);
  if (hung) at->second.hung.insert(node);
}

// Its workers are of the round that was published under their number, not of another with the same
// one.
bool Checker::runs_published(const Node& node) const {
  return node.workers->round >= started_ && has_published_place(node);
}

bool Checker::has_published_place(const Node& node) const {
  return is_published(node, *node.workers);
}

// Whoever began the next round could know of its workers: the store has their place, or had it when
// that one was in touch, or another that was has said since how far it had seen the job come.
bool Checker::is_known(const Node& node, const Round& next) const {
  if (!has_published_place(node)) return false;
  const Seat& seat = rounds_.at(node.workers->round).seats.at(node.config.ticket);
  return !seat.lost || std::any_of(seat.seen.begin(), seat.seen.end(), [&](int number) {
    const Time said = nodes_[static_cast<std::size_t>(number)]->said;
    return number == next.leader || (said >= *seat.lost && long_before(said, next.planned));
  });
}

bool Checker::is_published(const Node& node, const Assignment& place) const {
  const auto round = rounds_.find(place.round);
  if (round == rounds_.end()) return false;
  const auto seat = round->second.seats.find(node.config.ticket);
  return seat != round->second.seats.end() && seat->second.assignment == place;
}

void Checker::on_success_reported(int number, int round) {
  const Node& node = *nodes_[static_cast<std::size_t>(number)];
  if (round == started_ && was_writable() && is_led() && rounds_.contains(round) &&
      !runs_published(node) && !node.link_lost && !network_.cut(number) && !node.paused &&
      scheduler_.now() > std::max(node.link_up, rounds_.at(round).planned) + kSlack +
                             Milliseconds(plan_.max_delay_ms * 4))
    fail("node " + std::to_string(number) + " worked on in a round that has the number " +
         std::to_string(round) + " of another");
  if (round < started_ && !node.link_lost && !node.paused && !forgetful_ &&
      scheduler_.now() > node.link_up + kSlack + Milliseconds(plan_.max_delay_ms * 2))
    fail("node " + std::to_string(number) + " worked on in round " + std::to_string(round) +
         " though round " + std::to_string(started_) + " runs");
  const auto at = rounds_.find(round);
  if (at != rounds_.end() && at->second.seats.contains(node.config.ticket))
    at->second.succeeded.insert(number);
}

// Workers that make progress, on any node, are no hang; nobody knows of those that have just begun
// to.
void Checker::on_hang(Node& node) {
  if (!node.workers || !runs_published(node)) return;
  const int number = node.workers->round;
  node.told_of_hang = number;
  const Round& round = rounds_.at(number);
  // It is as good as over, by the hang or by something else: that it did hang stays said.
  if (!round.failed.empty()) return;
  for (const auto& [ticket, seat] : round.seats) {
    const Node& other = *nodes_[static_cast<std::size_t>(seat.node)];
    if (round.succeeded.contains(other.number) || other.stalls == number) continue;
    const bool in_doubt = other.was_in_trouble || node.was_in_trouble || store_failed_ ||
                          !long_before(other.stall_changed + writing_time(), scheduler_.now());
    if (other.stalled == number && in_doubt) continue;
    fail("node " + std::to_string(node.number) + " is told that round " + std::to_string(number) +
         " hangs, and the workers of node " + std::to_string(other.number) + " make progress");
  }
}

// If nobody has made progress for so long that all could hear of it, and nothing else has happened,
// they have.
void Checker::check_hang(const Node& node) {
  if (!node.workers || !runs_published(node) || store_failed_ || last_phase_ != Phase::Running ||
      node.workers->round != rounds_.rbegin()->first)
    return;
  const auto& [number, round] = *rounds_.rbegin();
  if (!round.failed.empty() || !round.succeeded.empty()) return;
  const bool quiet = std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& each) {
    const auto since = std::max(each->stall_changed, each->link_up) + writing_time() + kSlack;
    return !each->was_in_trouble && !each->told_to_stop && !each->told_to_go &&
           long_before(since, scheduler_.now()) && (!each->workers || each->stalls == number);
  });
  if (quiet && node.told_of_hang != number)
    fail("round " + std::to_string(number) + " hangs, and node " + std::to_string(node.number) +
         " is not told");
}

// The store has what it says of itself in its present session.
bool Checker::is_shown(const Node& node) const {
  const auto session = network_.session(node.number);
  const auto key = network_.store().keys().find(keys_.member(node.config.ticket));
  return network_.alive(session) && key != network_.store().keys().end() &&
         key->second.owner == session;
}

// The others wait for those only that the store shows.
void Checker::on_renewed(const Node& node) {
  if (node.workers && network_.in_touch(node.number) && !is_shown(node))
    fail("node " + std::to_string(node.number) +
         " renews its workers' lease, and the store does not show that it is there");
}

void Checker::on_start(const Node& node, const Assignment& a) {
  const std::string who = "node " + std::to_string(node.number);
  const auto at = rounds_.find(a.round);
  for (const auto& other : nodes_) {
    if (!other->workers || runs_published(*other) || is_same_round(*other->workers, a) ||
        expelled_.contains(other->config.ticket) || other->paused || other->link_lost ||
        !network_.connected(other->number) || network_.cut(other->number))
      continue;
    // Whatever the store has forgotten, those that are in touch can say what they run, and a leader
    // that is in touch hears them. Unavoidable: a round that was planned before that.
    const bool in_time = at != rounds_.end() && other->said < at->second.planned;
    if (in_time && was_writable() && is_led() &&
        scheduler_.now() > other->link_up + kSlack + Milliseconds(plan_.max_delay_ms * 4))
      fail("workers of round " + std::to_string(other->workers->round) + " on node " +
           std::to_string(other->number) + ", which is in touch, while round " +
           std::to_string(a.round) + " starts on " + who);
  }
  if (node.workers) fail(who + " starts workers beside those it has");
  if (scheduler_.now() >= node.renewed + node.config.keep_alive)
    fail(who + " starts workers without a lease");
  if (was_given(node, a)) return;
  if (at == rounds_.end()) return fail(who + " starts a round that was not published");
  const auto seat = at->second.seats.find(node.config.ticket);
  if (seat == at->second.seats.end() || !(seat->second.assignment == a))
    return fail(who + " starts with a place that it was not given");
  const bool in_touch = network_.alive(network_.session(node.number));
  if (a.round < started_ && (in_touch || (!forgetful_ && !set_back_)))
    fail(who + " starts round " + std::to_string(a.round) + " after round " +
         std::to_string(started_));
  started_ = std::max(started_, a.round);
  at->second.started.insert(node.number);
  known_losses_[node.number] = std::max(known_losses_[node.number], at->second.losses);

  for (const auto& other : nodes_) {
    if (!other->workers || other->workers->round >= a.round) continue;
    const std::string whose = "workers of round " + std::to_string(other->workers->round) +
                              " on node " + std::to_string(other->number) + " while round " +
                              std::to_string(a.round) + " starts on " + who;
    // Unavoidable: workers that no SIGKILL ends, after the leader has waited for them and left them
    // behind; and those of a node of which nobody can know, because the store has lost its round,
    // and it is out of touch or turned away, as all are that could tell of it, or was when the
    // round was planned. A store that is empty does not know that it has forgotten something.
    const bool out_of_touch =
        other->paused || other->link_lost || !network_.connected(other->number) ||
        network_.cut(other->number) || other->said < other->link_up ||
        !long_before(other->said, at->second.planned) ||
        scheduler_.now() <= other->said + kSlack + Milliseconds(plan_.max_delay_ms * 4);
    const auto& warned = at->second.warned;
    const bool told = std::any_of(warned.begin(), warned.end(), [&](const auto& round) {
      return is_same_round(round, *other->workers);
    });
    const bool unheard = !told && out_of_touch && !is_known(*other, at->second);
    const bool excused = (forgetful_ || set_back_) && unheard;
    if (!expelled_.contains(other->config.ticket) && !excused) fail(whose);
  }
}

// It is in the store, or was until that forgot it.
bool Checker::was_outcome(const Outcome& outcome) const {
  return (outcome_ && *outcome_ == outcome) ||
         std::find(forgotten_outcomes_.begin(), forgotten_outcomes_.end(), outcome) !=
             forgotten_outcomes_.end();
}

void Checker::on_finish(const Node& node, const Outcome& outcome) {
  const std::string who = "node " + std::to_string(node.number);
  if (node.workers) fail(who + " leaves with workers running");
  switch (outcome.end) {
    case End::Success:
    case End::Failure:
    case End::NodesLost:
      if (!was_outcome(outcome)) fail(who + " ends otherwise than the job");
      break;
    case End::Stopped:
      if (!node.told_to_stop && !node.told_to_go && !was_outcome(outcome))
        fail(who + " was stopped by nobody");
      if (outcome.exit_code != 143) fail(who + " gives another code than the signal's");
      if (!outcome_) check_told(node);
      break;
    case End::Timeout:
      if (outcome_ && !was_outcome(outcome) && node.came_through && !node.was_in_trouble &&
          !store_failed_)
        fail(who + " ends otherwise than the job: " + outcome.text);
      break;
    case End::Refused:
      // While the store was full it may not have been able to say in time that it had stopped.
      if (!outcome_ && !node.slow_stop && !plan_.asked_ranks && !forgetful_ &&
          (scheduler_.now() > full_until_ + node.config.stop_timeout + kLongestPause ||
           (!node.was_in_trouble && !refused_in_doubt_.contains(node.config.ticket))))
        fail(who + " was refused: " + outcome.text);
      break;
    case End::StoreLost:
      if (!node.was_in_trouble && !store_failed_) fail(who + " lost the store: " + outcome.text);
      if (outcome.exit_code != 125) fail(who + " lost the store, and gives another code");
      break;
  }
  // The host leaves last, unless it was told to stop and nobody has ended the job in time, or it
  // has waited for close_timeout. Unavoidable: those that it cannot see, or that cannot see it.
  if (node.told_to_stop && scheduler_.now() >= node.stop_told + node.config.keep_alive + kStopWait)
    return;
  if (!node.config.is_host || !outcome_ || !(*outcome_ == outcome)) return;
  if (scheduler_.now() >= ended_ + node.config.close_timeout) return;
  if (outcome.end == End::StoreLost) return;  // a store that takes nothing is of no use to anybody
  for (const auto& other : nodes_) {
    if (other.get() == &node || !other->running || !other->workers) continue;
    if (is_shown(*other) && !network_.cut(other->number) &&
        long_before(other->said, scheduler_.now()))
      fail("the host leaves before node " + std::to_string(other->number));
  }
}

// A stop that is in the store ends the job, whoever leads: as long as there is somebody who could.
void Checker::check_told(const Node& node) {
  if (!asked_to_end_.contains(node.number) || node.was_in_trouble || store_failed_) return;
  // While it waits for a rank that another has, it is no part of the job.
  if (plan_.asked_ranks && std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& other) {
        return other.get() != &node && other->registered &&
               other->config.node_rank == node.config.node_rank;
      }))
    return;
  // The leader was lost after the node was told: its session lives longer than the wait.
  if (const Node* who = leader(); who != nullptr && !network_.hears(who->number) &&
                                  network_.heard(who->number) > node.stop_told &&
                                  scheduler_.now() < network_.heard(who->number) +
                                                         who->config.keep_alive + kElection +
                                                         Milliseconds(plan_.max_delay_ms * 8))
    return;
  // Its session has only just ended, and nobody could be elected yet.
  if (elected_ != nullptr && leader() == nullptr && elected_->session_ended > node.stop_told &&
      scheduler_.now() < elected_->session_ended + kElection)
    return;
  // Or the leader was out of touch itself, and has only just come back; or was only just elected:
  // the one before was lost after the node was told, and its session lived until then.
  if (const Node* who = leader(); who != nullptr) {
    const Time since = std::max(who->link_up, led_since_.value_or(who->link_up));
    if (since > node.stop_told &&
        scheduler_.now() < since + kSlack + Milliseconds(plan_.max_delay_ms * 8))
      return;
  }
  // The leader may still write what it had decided before.
  if (writing_time() > kStopWait) return;
  // Without a place in the last round it just leaves.
  if (!rounds_.empty() && !rounds_.rbegin()->second.seats.contains(node.config.ticket)) return;
  for (const auto& other : nodes_) {
    if (other.get() != &node && other->running && other->came_through && !other->was_in_trouble &&
        network_.connected(other->number))
      return fail("node " + std::to_string(node.number) + " was told to stop, and nobody knows");
  }
}

void Checker::on_store_restart(Memory memory) {
  store_failed_ = true;
  // What they said may be lost, or heard late.
  for (const auto& node : nodes_) {
    node->leave_said.reset();
    node->leave_heard = false;
  }
  if (memory == Memory::Nothing) {
    forgetful_ = true;
    forget_since(Time{});
  }
  if (memory == Memory::Older) {
    set_back_ = true;
    forget_since(scheduler_.now() - Milliseconds(plan_.snapshot_age_ms));
    for (const auto& node : nodes_)
      silent_.insert(node->number);
  }
}

// What was written and said since then is lost. Who is in touch says again what it holds; who has
// heard only that others may hold something does not pass that on.
void Checker::forget_since(Time since) {
  std::erase_if(told_of_forgotten_, [&](const auto& told) { return told.second >= since; });
  for (auto& [number, round] : rounds_) {
    for (auto& [ticket, seat] : round.seats) {
      if (seat.lost || seat.written < since) continue;
      seat.lost = scheduler_.now();
      seat.seen.clear();
      for (const auto& node : nodes_) {
        const Time from = std::max({node->link_up, node->awake, node->linked, seat.written});
        if (network_.in_touch(node->number) && long_before(from, scheduler_.now()))
          seat.seen.insert(node->number);
      }
    }
  }
}

void Checker::on_store_full(bool full) {
  store_failed_ = true;
  (full ? full_since_ : full_until_) = scheduler_.now();
  full_ = full;
}

// Whom the store names; null: nobody.
const Node* Checker::leader() const {
  const auto key = network_.store().keys().find(keys_.leader);
  if (key == network_.store().keys().end()) return nullptr;
  const auto who = decode_leader(key->second.text);
  return who ? find(who->ticket) : nullptr;
}

// For so long that it has heard all that it was told.
bool Checker::is_led() const {
  if (set_back_) return false;  // it may be named by a session of old
  const Milliseconds enough = kSlack + Milliseconds(plan_.max_delay_ms * 4);
  if (!led_since_ || scheduler_.now() <= *led_since_ + enough) return false;
  const Node* node = leader();
  return node != nullptr && node->running && !node->paused && !node->link_lost &&
         network_.connected(node->number) && !network_.cut(node->number) &&
         scheduler_.now() > std::max(node->link_up, node->awake) + enough;
}

// Long enough that all could say what they have to.
bool Checker::was_writable() const {
  return !full_ && scheduler_.now() > full_until_ + kLongestPause + kSlack;
}

// Who is turned away for a limit does not come back at once, again and again.
void Checker::on_rejected(int node, bool known) {
  if (known) fail("node " + std::to_string(node) + " asks for more than the store takes");
  auto& last = rejections_[node];
  last.push_back(scheduler_.now());
  if (last.size() <= kEnough) return;
  last.pop_front();
  if (last.back() - last.front() < Milliseconds(1'000))
    fail("node " + std::to_string(node) + " asks a store that is full without a pause");
}

void Checker::on_end(bool all_finished) {
  if (!all_finished) fail("the job does not end");
  for (const auto& node : nodes_) {
    const bool own_end = outcome_ && outcome_->end != End::Stopped;
    if (cancelled_ && node->told_to_go && !own_end && !node->was_in_trouble && !store_failed_ &&
        node->outcome && node->outcome->end != End::Refused && node->outcome->exit_code != 143)
      fail("node " + std::to_string(node->number) + " was told to go and gives exit code " +
           std::to_string(node->outcome->exit_code));
  }
}

}  // namespace drun::simulation
