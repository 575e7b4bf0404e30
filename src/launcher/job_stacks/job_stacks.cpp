#include "launcher/job_stacks/job_stacks.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

#include "base/random_bytes.hpp"
#include "rendezvous/documents.hpp"
#include "stacks/job_look.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using rendezvous::Change;
using stacks::JobLook;

// Numbers that the rendezvous does not come to.
constexpr rendezvous::WatchId kRequests = 0x40000001;
constexpr rendezvous::WatchId kAnswers = 0x40000002;
constexpr rendezvous::WatchId kPlaces = 0x40000003;
constexpr rendezvous::RequestId kFirstCommit = std::uint64_t{1} << 62;

constexpr std::chrono::seconds kFoldLimit{30};
// For the store to say who they are that have not answered: such a part of the time for answers.
constexpr int kPlacesPart = 20;
// Of the job's report, in bytes.
constexpr std::size_t kLongestReport = 8U << 20;
// Of one transaction.
constexpr std::size_t kMostWrites = 100;

}  // namespace

JobStacks::JobStacks(asio::io_context& io, StackDesk& desk, std::string_view job,
                     std::function<int()> round)
    : io_(io),
      desk_(desk),
      keys_(job),
      own_name_(random_name(16)),
      round_(std::move(round)),
      limit_(io, [this] { end_asking(); }) {}

void JobStacks::listen() {
  if (store_ == nullptr) return;
  if (early_) take_request(*std::exchange(early_, std::nullopt));
  if (std::exchange(listens_, true)) return;
  store_->watch(kRequests, keys_.look, false);
}

void JobStacks::forget_store() {
  store_ = nullptr;
  listens_ = false;
  early_.reset();
  if (asking_) end_asking();
}

bool JobStacks::on_event(const rendezvous::KeyValueEvent& event) {
  const auto take = [this](rendezvous::WatchId watch, const std::vector<Change>& changes) {
    if (watch != kRequests && watch != kAnswers) return false;
    for (const Change& change : changes)
      watch == kRequests ? take_request(change) : take_answer(change);
    return true;
  };
  // A request may have come before this node's workers had started. An old one is of another round.
  if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event)) {
    if (snapshot->watch == kPlaces) take_places(snapshot->entries);
    return snapshot->watch == kPlaces || take(snapshot->watch, snapshot->entries);
  }
  if (const auto* changes = std::get_if<rendezvous::WatchChanges>(&event))
    return changes->watch == kPlaces || take(changes->watch, changes->changes);
  if (const auto* rejected = std::get_if<rendezvous::WatchRejected>(&event))
    return rejected->watch == kRequests || rejected->watch == kAnswers ||
           rejected->watch == kPlaces;
  const auto* result = std::get_if<rendezvous::CommitResult>(&event);
  return result != nullptr && result->request >= kFirstCommit;
}

void JobStacks::take_request(const Change& change) {
  const auto request = change.value ? stacks::decode_job_look(*change.value) : std::nullopt;
  if (!request || request->id == answered_ || store_ == nullptr) return;
  if (request->round > round_()) early_ = change;  // other nodes were faster
  if (request->round != round_()) return;
  answered_ = request->id;
  StackWish wish;
  wish.unwind = request->unwind;
  wish.limit = request->limit;
  wish.last = request->last;
  wish.longest = request->longest;
  desk_.take(wish, [this, id = request->id](const Result<std::string>& report) {
    const std::string key = keys_.answers_to(id) + own_name_;
    say(key, report ? *report : std::string());
  });
}

// A node that cannot look says so, and nobody waits for it.
void JobStacks::say(const std::string& key, const std::string& report) {
  if (store_ == nullptr) return;
  rendezvous::Transaction transaction;
  transaction.writes.push_back({key, report, true});
  commit(std::move(transaction));
}

void JobStacks::commit(rendezvous::Transaction transaction) {
  if (store_ != nullptr) store_->commit(kFirstCommit + requests_++, std::move(transaction));
}

void JobStacks::ask(const StackWish& wish, int nodes, Done done) {
  if (store_ == nullptr || nodes < 2) return desk_.take(wish, std::move(done));
  const auto until = Clock::now() + wish.job_limit;
  if (asking_) {
    asking_->waiting.push_back(std::move(done));
    return end_at(std::min(asking_->until, until));
  }
  StackWish own = wish;
  own.longest = stacks::longest_answer(static_cast<std::size_t>(nodes));
  asking_ = Asking{};
  asking_->id = random_name(16);
  asking_->nodes = static_cast<std::size_t>(nodes);
  asking_->round = round_();
  asking_->places_limit = wish.job_limit / kPlacesPart;
  asking_->waiting.push_back(std::move(done));
  store_->watch(kAnswers, keys_.answers_to(asking_->id), true);
  rendezvous::Transaction transaction;
  transaction.writes.push_back(
      {keys_.look,
       encode(JobLook{asking_->id, own.unwind, own.limit, own.last, own.longest, asking_->round}),
       true});
  commit(std::move(transaction));
  end_at(until);
  // Its own answer goes no long way: it is there if the store is not.
  answered_ = asking_->id;
  desk_.take(own, [this, key = keys_.answers_to(asking_->id) + own_name_](const auto& report) {
    take_answer({key, report ? *report : std::string()});
  });
}

void JobStacks::end_at(Clock::time_point time) {
  asking_->until = time;
  limit_.set(time);
}

void JobStacks::take_answer(const Change& change) {
  // Answers to an earlier request may still be on their way.
  if (!asking_ || !change.value || !change.key.starts_with(keys_.answers_to(asking_->id))) return;
  asking_->answers.insert_or_assign(change.key, *change.value);
  if (asking_->answers.size() >= asking_->nodes) end_asking();
}

// The first rank of the next node, less one, is a node's last.
void JobStacks::take_places(const std::vector<Change>& documents) {
  if (!asking_) return;
  std::map<int, std::string> hosts;  // by first rank
  int world_size = 0;
  for (const Change& change : documents) {
    if (!change.value) continue;
    const auto place = rendezvous::decode_assignment(*change.value);
    if (!place || !place->refused.empty() || place->assignment.round != asking_->round) continue;
    hosts.emplace(place->assignment.first_rank, place->host);
    world_size = place->assignment.world_size;
  }
  if (hosts.size() != asking_->nodes) return end_asking();  // not all are known: which are missing?
  for (auto place = hosts.begin(); place != hosts.end(); ++place) {
    const auto next = std::next(place);
    const int end = next == hosts.end() ? world_size : next->first;
    asking_->places.push_back({place->second, {place->first, end - 1}});
  }
  end_asking();
}

void JobStacks::end_asking() {
  if (!asking_) return;
  if (asking_->answers.size() < asking_->nodes && store_ != nullptr && !asking_->seeks_places) {
    asking_->seeks_places = true;
    end_at(Clock::now() + asking_->places_limit);
    return store_->watch(kPlaces, keys_.assignments, true);
  }
  limit_.set(std::nullopt);
  auto asked = std::make_shared<Asking>(std::move(*asking_));
  asking_.reset();
  if (store_ != nullptr) {
    store_->unwatch(kAnswers);
    if (asked->seeks_places) store_->unwatch(kPlaces);
    rendezvous::Transaction transaction;
    transaction.writes.push_back({keys_.look, std::nullopt, false});
    for (const auto& [key, text] : asked->answers) {
      transaction.writes.push_back({key, std::nullopt, false});
      if (transaction.writes.size() >= kMostWrites) commit(std::exchange(transaction, {}));
    }
    commit(std::move(transaction));
  }
  if (!thread_) thread_.emplace(io_, [] {});
  thread_->ask<std::string>(
      kFoldLimit,
      [asked] {
        return to_json_within(stacks::fold_answers(asked->answers, asked->nodes, asked->places),
                              kLongestReport);
      },
      [asked](const Result<std::string>& report) {
        for (const Done& done : asked->waiting)
          done(report);
      });
}

void JobStacks::cancel() {
  limit_.set(std::nullopt);
  store_ = nullptr;
  asking_.reset();
  if (thread_) thread_->cancel();
}

}  // namespace drun::launcher
