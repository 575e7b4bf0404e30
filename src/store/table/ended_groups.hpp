// Forgets what nobody needs any more: groups of keys that were marked as ended, or that no session
// has had a part in, some time ago.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// A group is all keys ROOT/NAME/...; the key ROOT/NAME/MARK says that it has ended. drun's jobs are
// such groups.
class EndedGroups {
 public:
  // Of one that was not marked nobody knows that it has ended.
  static constexpr int kAbandoned = 4;

  // `table` outlives this. Groups are forgotten when they have had their mark for `after`, and no
  // session's key; without the mark, when they have had no session's key for kAbandoned times that.
  EndedGroups(KeyTable& table, std::string root, std::string mark, Milliseconds after);

  // Looks at the table, at each call for which the time has come, and forgets.
  void check(Time now);
  [[nodiscard]] Time next_check() const { return next_; }

 private:
  [[nodiscard]] std::string group_of(std::string_view key) const;
  void forget(const std::string& group);

  KeyTable& table_;
  std::string root_;
  std::string mark_;
  Milliseconds after_;
  Time next_{};
  struct Idle {
    bool marked = false;
    Time since{};
  };
  std::map<std::string, Idle> idle_;
};

}  // namespace drun::store
