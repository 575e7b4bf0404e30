// Jobs whose rounds are known to a store, although nobody is there who told of them: since when,
// and when they are looked at again. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "store/table/sessions.hpp"

namespace drun::store {

class DesertedJobs {
 public:
  // They are asked about in each turn of the server's loop, but not all are looked at each time.
  static constexpr Milliseconds kLookPause{20};

  struct Job {
    Time since{};
    bool kept = false;  // its round was in the table; once it is deleted, the job is over
  };
  // When a job is forgotten.
  using DueAt = std::function<Time(const std::string& name, const Job& job)>;
  // Whether it is, now.
  using IsOver = std::function<bool(const std::string& name, const Job& job)>;

  void add(const std::string& name, bool kept, Time now, const DueAt& due_at);
  // Somebody is there again.
  void remove(const std::string& name) { jobs_.erase(name); }
  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  // Removes those that are over; how many they are. Nothing, if it has just looked and none is due.
  std::size_t look(Time now, const IsOver& is_over, const DueAt& due_at);
  // look() is due.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  std::map<std::string, Job, std::less<>> jobs_;
  Time look_at_{};            // they are looked at again
  Time due_{};                // the first of them, as they were then
  bool looked_away_ = false;  // since then
};

}  // namespace drun::store
