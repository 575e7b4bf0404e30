// How an agent stands for leader: what the leader key says, when to write it, and whether whoever
// it names is there. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/outbox.hpp"
#include "rendezvous/rejections.hpp"

namespace drun::rendezvous {

class Election {
 public:
  enum class Holder {
    Nobody,  // whatever the key says
    Self,    // the key has what this agent wrote last
    Other
  };
  // What matters of the agent around it.
  struct Candidate {
    bool stays = false;      // linked to the store, does not lead, and its part in the job goes on
    bool stands = false;     // and it may lead
    std::int64_t epoch = 0;  // of the round that the store shows
    Milliseconds stand_delay{0};  // once nobody leads
  };

  // The references must outlive this.
  Election(const Config& config, const Keys& keys, Outbox& outbox)
      : config_(config), keys_(keys), outbox_(outbox) {}

  // `hosts`: when its own store has just begun, nobody leads, so it does not wait for the snapshot.
  void begin(bool hosts);
  [[nodiscard]] bool begun() const { return watch_ != 0; }
  [[nodiscard]] bool is(WatchId watch) const { return watch == watch_; }
  void on_link_lost() { current_ = false; }
  void on_new_session() { request_ = 0; }
  // The leader key; true: it has changed to this.
  [[nodiscard]] bool on_snapshot(const WatchSnapshot& snapshot, Time now);
  [[nodiscard]] bool on_value(const std::optional<std::string>& value, Time now);
  // Of whoever the key names.
  void on_look(const WatchSnapshot& snapshot, Time now);
  void on_rejected(WatchId watch, Time now);
  // What has become of the attempt to stand; nullopt: it was no answer to one.
  [[nodiscard]] std::optional<CommitOutcome> on_commit(const CommitResult& result, Time now);

  // Looks whether the leader is there.
  void look(const Candidate& candidate, Time now);
  void stand(const Candidate& candidate, Time now);
  // It was elected, as the key or the store's answer says; it leads as that value from now on.
  void lead(std::string value);
  // The key has gone to somebody else, or is gone.
  [[nodiscard]] bool has_lost() const {
    return current_ && value_ != leading_as_ && (holder_ != Holder::Nobody || seen_leading_);
  }
  // Begins a new watch: its snapshot shows who leads.
  void read_again();

  [[nodiscard]] Holder holder() const { return holder_; }
  [[nodiscard]] bool current() const { return current_; }
  [[nodiscard]] bool elected() const { return holder_ == Holder::Self && current_; }
  [[nodiscard]] const std::optional<std::string>& value() const { return value_; }
  [[nodiscard]] const std::string& standing_as() const { return standing_as_; }
  [[nodiscard]] const std::string& leading_as() const { return leading_as_; }
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }
  [[nodiscard]] const Rejections& rejections() const { return rejections_; }
  // The last other one that was seen since this agent led.
  [[nodiscard]] LeaderDocument take_other();
  [[nodiscard]] std::optional<Time> next_deadline(const Candidate& candidate) const;

 private:
  [[nodiscard]] bool may_stand(const Candidate& candidate) const {
    return candidate.stands && current_ && holder_ == Holder::Nobody;
  }
  [[nodiscard]] bool may_look(const Candidate& candidate) const {
    return look_at_ && candidate.stays && current_;
  }
  void stop_looking();

  const Config& config_;
  const Keys& keys_;
  Outbox& outbox_;
  WatchId watch_ = 0;
  bool current_ = false;
  Holder holder_ = Holder::Nobody;
  std::optional<std::string> value_;
  std::optional<Time> look_at_;  // whether the leader is there
  WatchId look_watch_ = 0;       // for that
  LeaderDocument other_;
  std::int64_t epoch_ = 0;  // the highest seen or used
  std::optional<Time> stand_at_;
  RequestId request_ = 0;
  std::string standing_as_;  // the value of the last attempt
  Rejections rejections_;
  std::string leading_as_;  // the value while leading
  bool seen_leading_ = false;
};

}  // namespace drun::rendezvous
