// Who waits until a server serves: they are called, once a majority of them is there. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/protocol/control_protocol.hpp"
#include "store/table/electorate.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

// Somebody who waits until this server serves.
class Applicant {
 public:
  Applicant() = default;
  Applicant(const Applicant&) = delete;
  Applicant& operator=(const Applicant&) = delete;
  virtual ~Applicant() = default;

  // A majority is here: is to be confirmed.
  virtual void on_call(const control::Pulsed& call) = 0;
  // The server serves: opens the session that was asked for. kNoSession: there is no room.
  virtual SessionId on_welcome(Time now) = 0;
  // The job's store is elsewhere. It waits no longer.
  virtual void on_moved(const control::Moved& moved) = 0;
};

class Applicants {
 public:
  struct Waiting {
    Applicant* applicant = nullptr;
    bool votes = false;
    std::string job{};
    std::uint64_t call = 0;  // the stamp of the last one; 0: none in this generation
    Time heard{};            // since then it has confirmed nothing to another store
  };

  Waiting& add(VoterId number, Applicant& applicant, std::string job) {
    return waiting_[number] = {&applicant, false, std::move(job)};
  }
  // The number is one of theirs, and it was called with this stamp last.
  [[nodiscard]] bool was_called(VoterId number, std::uint64_t stamp) const;
  // What all voters among them were called with counts no more.
  void uncall();
  // Those voters who have not been called since.
  void call(const control::Pulsed& call);
  // None of the voters has confirmed anything to another store since then, nor since `latest`.
  [[nodiscard]] Time heard(Time latest) const;

  // It waits no longer. Nullopt: it did not.
  std::optional<Waiting> take(VoterId number);
  using Taken = std::vector<std::pair<VoterId, Waiting>>;
  [[nodiscard]] Taken take_if(const std::function<bool(VoterId, const Waiting&)>& whom);
  [[nodiscard]] Taken take_all();

  [[nodiscard]] auto begin() { return waiting_.begin(); }
  [[nodiscard]] auto end() { return waiting_.end(); }
  [[nodiscard]] auto begin() const { return waiting_.begin(); }
  [[nodiscard]] auto end() const { return waiting_.end(); }

 private:
  std::map<VoterId, Waiting> waiting_;
};

}  // namespace drun::store
