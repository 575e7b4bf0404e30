// Writes down in the job's store how far the ranks of this node have come, for drunctl status:
// seldom, and outside of what the rendezvous decides by.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/documents.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {

// One thread: the loop's.
class BeatNote {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `job`: its id.
  explicit BeatNote(std::string_view job) : keys_(job) {}

  // Where the node with this ticket has joined; it must outlive this, or be forgotten.
  void use(rendezvous::KeyValue& store, std::string_view ticket);
  void forget_store() { store_ = nullptr; }
  // Only if it says something new, and the last time was long ago. The results of the commits are
  // for nobody: their numbers are those that JobStacks takes for its own.
  void write(const rendezvous::BeatDocument& beat, Time now);
  // No rank of this node is to give another one.
  void erase();

 private:
  const rendezvous::Keys keys_;
  rendezvous::KeyValue* store_ = nullptr;
  std::string key_;
  rendezvous::BeatDocument written_;
  Time written_at_{};
  std::uint64_t writes_ = 0;
};

}  // namespace drun::launcher
