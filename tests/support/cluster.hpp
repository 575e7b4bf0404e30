// Participants around one FakeStore, without delays: every message arrives before the next input.
// Workers start and stop at once; tests say when they succeed or fail. For tests of one behaviour;
// the simulation is for all of them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/participant.hpp"
#include "support/fake_store.hpp"

namespace drun::test {

class Cluster {
 public:
  struct Node {
    rendezvous::Config config;
    SessionId session = 0;
    std::unique_ptr<rendezvous::Participant> participant;
    bool connected = true;
    bool loses_writes = false;  // the store neither sees nor answers them
    int rejected = 0;           // of its transactions, because the store was full
    bool answers_prepare = true;
    bool answers_stop = true;
    std::optional<rendezvous::Assignment> workers;  // those that run
    std::vector<rendezvous::Assignment> started;    // all that were
    std::vector<rendezvous::StopAction> stops;
    std::optional<rendezvous::Outcome> outcome;
    std::vector<std::string> log;
    std::vector<rendezvous::News> news;
    std::string progress;
    std::vector<rendezvous::CompareFactsAction> compared;
    std::vector<rendezvous::SetAsideAction> set_aside;
  };

  Cluster();

  // Config that agree; change them before start().
  rendezvous::Config config(int min_nodes, int max_nodes) const;
  // Starts an agent and returns its number. The first one is not the host unless asked for.
  int start(rendezvous::Config config);
  // `nodes` agents of a fixed-size job, the first hosting.
  void start_all(int nodes, int max_restarts = 0);

  void settle();  // until nothing is in flight; time stands still
  // Lets time pass, deadline by deadline.
  void advance(rendezvous::Milliseconds duration);

  void kill(int node);  // the process is gone, its session with it
  void cut(int node);   // the connection is down, the session lives
  void reconnect(int node, bool new_session);
  void fail(int node, int exit_code = 1, bool restartable = true);
  void succeed(int node);
  void tell_facts(int node, const std::string& sheet);
  void stop(int node, int exit_code = 143);
  void leave(int node);
  void workers_gone(int node);  // for a node that does not answer stops by itself

  Node& operator[](int node) { return *nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }
  FakeStore& store() { return store_; }
  // From now on the store takes only transactions that set no more keys than this.
  void fill_store(std::size_t room) { room_ = room; }
  [[nodiscard]] rendezvous::Time now() const { return now_; }
  // The group ranks of running nodes in the order of the nodes; -1 where none runs.
  [[nodiscard]] std::vector<int> group_ranks();

 private:
  void act(Node& node);
  void put(Node& node, rendezvous::KeyValueEvent event);
  rendezvous::CommitResult commit(Node& node, const rendezvous::CommitAction& action);

  FakeStore store_;
  std::size_t room_ = SIZE_MAX;
  rendezvous::Time now_{};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<SessionId, Node*> by_session_;
  std::map<Node*, std::map<rendezvous::WatchId, rendezvous::WatchAction>> watches_;
  struct Message {
    Node* node;
    rendezvous::KeyValueEvent event;
  };
  std::deque<Message> messages_;
};

}  // namespace drun::test
