// The other jobs (rendezvous ids) that have agents on a job's store. Pure: fed from a watch of
// kAllJobs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"

namespace drun::rendezvous {

class OtherJobs {
 public:
  // `own`: the keys of the job that asks.
  explicit OtherJobs(const Keys& own) : own_(own.prefix) {}

  void on_snapshot(const std::vector<Change>& entries);
  void on_changes(const std::vector<Change>& changes);

  [[nodiscard]] bool empty() const { return members_.empty(); }
  // Whether the key is that of another job's agent.
  [[nodiscard]] bool names_one(std::string_view key) const { return member(key).has_value(); }
  // "'b' (2 nodes), 'c' (1 node)", by name; cut after a few. Empty when there are none.
  [[nodiscard]] std::string text() const;

 private:
  struct Member {
    std::string_view job;
    std::string_view ticket;
  };
  [[nodiscard]] std::optional<Member> member(std::string_view key) const;
  void apply(const Change& change);

  std::string own_;
  std::map<std::string, std::set<std::string>, std::less<>> members_;  // id, as in keys -> tickets
};

}  // namespace drun::rendezvous
