#include "support/cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

namespace drun::test {

using namespace rendezvous;

namespace {

constexpr int kBusy = 10'000;  // turns in one moment

}  // namespace

Cluster::Cluster()
    : store_([this](SessionId session, KeyValueEvent event) {
        const auto node = by_session_.find(session);
        if (node != by_session_.end()) messages_.push_back({node->second, std::move(event)});
      }) {
  now_ += std::chrono::hours(1);
}

Config Cluster::config(int min_nodes, int max_nodes) const {
  Config config;
  config.run_id = "job";
  config.min_nodes = min_nodes;
  config.max_nodes = max_nodes;
  const auto number = std::to_string(nodes_.size());
  config.host = "node" + number;
  config.address = "10.0.0." + number;
  config.ticket = "ticket" + number;
  config.worker_store_port = static_cast<std::uint16_t>(5000 + nodes_.size());
  return config;
}

int Cluster::start(Config config) {
  auto& node = *nodes_.emplace_back(std::make_unique<Node>());
  node.config = config;
  node.session = store_.open();
  by_session_[node.session] = &node;
  node.participant = std::make_unique<Participant>(std::move(config), now_);
  put(node, LinkEvent{Link::Up, {}});
  settle();
  return size() - 1;
}

void Cluster::start_all(int nodes, int max_restarts) {
  for (int i = 0; i < nodes; ++i) {
    auto s = config(nodes, nodes);
    s.max_restarts = max_restarts;
    s.is_host = i == 0;
    start(s);
  }
  advance(Milliseconds(500));
}

void Cluster::put(Node& node, KeyValueEvent event) {
  node.participant->on_key_value(event, now_);
  act(node);
}

void Cluster::settle() {
  while (!messages_.empty()) {
    Message message = std::move(messages_.front());
    messages_.pop_front();
    if (message.node->participant && message.node->connected)
      put(*message.node, std::move(message.event));
  }
}

CommitResult Cluster::commit(Node& node, const CommitAction& action) {
  const auto& transaction = action.transaction;
  if (!node.connected) return {action.request, CommitOutcome::Unknown, ""};
  if (values_set(transaction) > room_) {
    ++node.rejected;
    return {action.request, CommitOutcome::Rejected, "the store is full"};
  }
  return {action.request, store_.commit(node.session, transaction), ""};
}

void Cluster::act(Node& node) {
  if (!node.participant) return;
  auto& participant = *node.participant;
  for (auto actions = participant.take_actions(); !actions.empty();
       actions = participant.take_actions()) {
    for (auto& action : actions) {
      if (auto* watch = std::get_if<WatchAction>(&action)) {
        watches_[&node][watch->watch] = *watch;
        if (node.connected) store_.watch(node.session, watch->watch, watch->key, watch->prefix);
      } else if (auto* unwatch = std::get_if<UnwatchAction>(&action)) {
        watches_[&node].erase(unwatch->watch);
        if (node.connected) store_.unwatch(node.session, unwatch->watch);
      } else if (auto* commit = std::get_if<CommitAction>(&action)) {
        if (node.loses_writes) continue;
        messages_.push_back({&node, this->commit(node, *commit)});
      } else if (auto* prepare = std::get_if<PrepareWorkerStoreAction>(&action)) {
        if (node.answers_prepare)
          participant.on_worker_store_ready(prepare->assignment.round,
                                            prepare->assignment.master_port, now_);
      } else if (auto* begin = std::get_if<StartAction>(&action)) {
        node.workers = begin->assignment;
        node.started.push_back(begin->assignment);
        participant.on_workers_started(begin->assignment.round, now_);
      } else if (auto* stop = std::get_if<StopAction>(&action)) {
        node.stops.push_back(*stop);
        if (node.answers_stop) {
          node.workers.reset();
          participant.on_workers_stopped(now_);
        }
      } else if (auto* finish = std::get_if<FinishAction>(&action)) {
        node.outcome = finish->outcome;
        store_.expire(node.session);
      } else if (auto* log = std::get_if<LogAction>(&action)) {
        node.log.push_back(log->text);
      } else if (auto* news = std::get_if<NewsAction>(&action)) {
        node.news.push_back(news->news);
      } else if (auto* progress = std::get_if<ProgressAction>(&action)) {
        node.progress = progress->text;
      } else if (auto* compare = std::get_if<CompareFactsAction>(&action)) {
        node.compared.push_back(*compare);
      } else if (auto* aside = std::get_if<SetAsideAction>(&action)) {
        node.set_aside.push_back(*aside);
      }
    }
  }
}

void Cluster::advance(Milliseconds duration) {
  const Time end = now_ + duration;
  Time moment = now_;
  for (int busy = 0;; ++busy) {
    settle();
    if (std::exchange(moment, now_) != now_) busy = 0;
    if (busy > kBusy) throw std::runtime_error("time stands still: a deadline stays in the past");
    std::optional<Time> next;
    for (const auto& node : nodes_) {
      if (!node->participant) continue;
      if (const auto deadline = node->participant->next_deadline())
        next = next ? std::min(*next, *deadline) : *deadline;
    }
    if (!next || *next > end) break;
    now_ = std::max(now_, *next);
    for (const auto& node : nodes_) {
      if (!node->participant) continue;
      const auto deadline = node->participant->next_deadline();
      if (!deadline || *deadline > now_) continue;
      node->participant->on_time(now_);
      act(*node);
    }
  }
  now_ = end;
}

void Cluster::kill(int node) {
  Node& n = (*this)[node];
  n.participant.reset();
  n.workers.reset();
  store_.expire(n.session);
  settle();
}

void Cluster::cut(int node) {
  Node& n = (*this)[node];
  settle();
  store_.disconnect(n.session);
  put(n, LinkEvent{Link::Down, "connection reset"});
  n.connected = false;
}

void Cluster::reconnect(int node, bool new_session) {
  Node& n = (*this)[node];
  n.connected = true;
  if (new_session) {
    store_.expire(n.session);
    settle();
    n.session = store_.open();
    by_session_[n.session] = &n;
  }
  put(n, LinkEvent{new_session ? Link::NewSession : Link::Up, {}});
  const auto watches = watches_[&n];
  for (const auto& [id, watch] : watches)
    store_.watch(n.session, id, watch.key, watch.prefix);
  settle();
}

void Cluster::fail(int node, int exit_code, bool restartable) {
  Node& n = (*this)[node];
  FailureSummary failure;
  failure.rank = n.workers->first_rank;
  failure.group_rank = n.workers->group_rank;
  failure.host = n.config.host;
  failure.exit_code = exit_code;
  failure.cause = "exit code " + std::to_string(exit_code);
  failure.restartable = restartable;
  n.participant->on_workers_failed(n.workers->round, failure, now_);
  act(n);
  settle();
}

void Cluster::succeed(int node) {
  Node& n = (*this)[node];
  n.participant->on_workers_succeeded(n.workers->round, now_);
  act(n);
  settle();
}

void Cluster::leave(int node) {
  Node& n = (*this)[node];
  n.participant->on_leave_requested("told to go by SIGTERM", 143, now_);
  act(n);
  settle();
}

void Cluster::tell_facts(int node, const std::string& sheet) {
  Node& n = (*this)[node];
  n.participant->on_facts(sheet, now_);
  act(n);
  settle();
}

void Cluster::stop(int node, int exit_code) {
  Node& n = (*this)[node];
  n.participant->on_stop_requested("told to stop by SIGTERM", exit_code, now_);
  act(n);
  settle();
}

void Cluster::workers_gone(int node) {
  Node& n = (*this)[node];
  n.workers.reset();
  n.participant->on_workers_stopped(now_);
  act(n);
  settle();
}

std::vector<int> Cluster::group_ranks() {
  std::vector<int> ranks;
  for (const auto& node : nodes_)
    ranks.push_back(node->workers ? node->workers->group_rank : -1);
  return ranks;
}

}  // namespace drun::test
