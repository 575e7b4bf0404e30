// The stacks of a whole job: asks the agents of its other nodes through their store, and answers
// when one of them, or drunctl, asks. A request is a key that all of them watch; each answers under
// a key of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/job_stacks/stack_desk.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class JobStacks {
 public:
  using KeyValue = rendezvous::KeyValue;
  // A stacks::StackReport of the whole job as JSON.
  using Done = StackDesk::Done;

  // The references must outlive this. `job`: its id. `round`: of this node's workers, or of the
  // last that it had.
  JobStacks(asio::io_context& io, StackDesk& desk, std::string_view job,
            std::function<int()> round);

  // This agent takes part in a job of several nodes, which meet there.
  void use_store(KeyValue& store) { store_ = &store; }
  // Answers from here on what is asked about the round of its workers. Call when those of a round
  // have started.
  void listen();
  // The store is not to be used any more: asks nobody but this node.
  void forget_store();
  // An event of the store. False: it is for somebody else.
  [[nodiscard]] bool on_event(const rendezvous::KeyValueEvent& event);

  // Asks all `nodes` of the round; those that say nothing in time are counted and named in a note
  // of the report. A request that comes while another is under way gets the same answer, at the
  // earlier of their limits.
  void ask(const StackWish& wish, int nodes, Done done);
  // Nobody is told anything any more.
  void cancel();

 private:
  struct Asking {
    std::string id;
    std::size_t nodes = 0;
    std::chrono::steady_clock::time_point until;
    std::map<std::string, std::string> answers;  // by key
    int round = 0;
    bool seeks_places = false;  // of those that have not answered
    std::chrono::milliseconds places_limit{};
    std::vector<stacks::NodeRanks> places;
    std::vector<Done> waiting;
  };

  void take_request(const rendezvous::Change& change);
  void take_answer(const rendezvous::Change& change);
  void say(const std::string& key, const std::string& report);
  void take_places(const std::vector<rendezvous::Change>& documents);
  void end_at(std::chrono::steady_clock::time_point time);  // at the latest
  void end_asking();
  void commit(rendezvous::Transaction transaction);

  asio::io_context& io_;
  StackDesk& desk_;
  const rendezvous::Keys keys_;
  const std::string own_name_;
  const std::function<int()> round_;
  KeyValue* store_ = nullptr;
  bool listens_ = false;
  std::optional<rendezvous::Change> early_;  // the last request about a round to come
  std::string answered_;                     // the last request
  std::optional<Asking> asking_;
  std::optional<FileDesk> thread_;  // folds
  DeadlineTimer limit_;
  std::uint64_t requests_ = 0;
};

}  // namespace drun::launcher
