// The key table: values, queues, waits and watches. A plain single-threaded class without socket or
// clock; both protocols act on it. docs/protocol.md says what each request means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/table/budget.hpp"
#include "store/table/table_client.hpp"

namespace drun::store {

using SessionId = std::uint64_t;
inline constexpr SessionId kNoSession = 0;

class KeyTable {
 public:
  // What a key, a queue item, a wait's key or a watch counts besides its bytes.
  static constexpr std::size_t kOverheadBytes = 128;
  // What telling one watch of a change counts besides the bytes of that.
  static constexpr std::size_t kTellingBytes = 64;

  // `budget` bounds what is held, in all and for each job; it outlives the table.
  explicit KeyTable(Budget& budget) : budget_(budget) {}
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;
  // Precondition: all clients were dropped.
  ~KeyTable() { clear(); }

  // ---- keys; views and pointers live until the next change ----

  [[nodiscard]] const std::string* find(std::string_view key) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  // Visit(Change) with the keys that begin with `prefix`, in the order of their bytes, until it
  // returns false. Must not change the table.
  template <typename Visit>
  void list(std::string_view prefix, Visit visit) {
    sort_keys();
    for (auto it = ordered_->lower_bound(prefix); it != ordered_->end() && it->starts_with(prefix);
         ++it)
      if (!visit(current(*it))) return;
  }
  // The session that has the key; kNoSession: none has, or there is no such key.
  [[nodiscard]] SessionId owner_of(std::string_view key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? kNoSession : it->second.owner;
  }
  // Whether list() would visit more than `most` bytes of keys and values, `a_key` more for each of
  // the keys. Looks at no more than it takes to tell.
  [[nodiscard]] bool lists_more_than(std::size_t most, std::string_view prefix,
                                     std::size_t a_key) const;
  // How many changes were published so far.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

  // Which limit left no room, the last time that a request was over the budget.
  [[nodiscard]] const char* refusal() const { return budget_.refusal(); }

  // ---- changes: a request makes any number of them, then calls publish() once ----

  // From now on the key is `owner`'s, and goes with that session. Wakes the key's waiters. False:
  // over the budget, and nothing was changed.
  [[nodiscard]] bool put(std::string_view key, std::string_view value,
                         SessionId owner = kNoSession);
  // The same without waking: for BARRIER.
  [[nodiscard]] bool put_quietly(std::string_view key, std::string_view value,
                                 SessionId owner = kNoSession);
  [[nodiscard]] bool append(std::string_view key, std::string_view value);
  // False: there was none.
  bool erase(std::string_view key);
  // Tells the watches what has changed since the last call, as one change.
  void publish() {
    if (!is_changed_) return;
    is_changed_ = false;
    ++revision_;
    if (!changed_.empty()) tell_watches();
  }
  // Deletes a session's keys and publishes that.
  void erase_owned_by(SessionId owner);
  // Whether that is more than `most` bytes of work.
  [[nodiscard]] bool erasing_takes_more_than(std::size_t most, SessionId owner) const;
  // Deletes all keys and queues, silently.
  void clear();

  // ---- queues ----

  // Wakes one waiter. False: over the budget.
  [[nodiscard]] bool push(std::string_view queue, std::string_view value);
  [[nodiscard]] std::size_t queue_size(std::string_view queue) const;
  // The next to be popped. Precondition: queue_size(queue) > 0.
  [[nodiscard]] const std::string& queue_front(std::string_view queue) const {
    return queues_.find(queue)->second.front();
  }
  // Precondition: queue_size(queue) > 0.
  std::string pop(std::string_view queue);

  // ---- waits: named by the client and a number that is free there ----

  enum class WaitOutcome { Done, Waiting, OverBudget };
  // Counts the keys that are missing now, each as often as it is named; the next creation of a key
  // counts it down. A queue that is not empty counts as a key. Done: none is missing, and nothing
  // was registered.
  [[nodiscard]] WaitOutcome wait(TableClient& client, std::uint64_t wait,
                                 std::span<const std::string_view> keys) {
    return register_wait(client, wait, keys, false);
  }
  // Likewise for one key, for any number of waiters whom the client knows. It is told of each push
  // that comes to it, until the wait is cancelled.
  [[nodiscard]] WaitOutcome wait_shared(TableClient& client, std::uint64_t wait,
                                        std::string_view key) {
    return register_wait(client, wait, {&key, 1}, true);
  }
  // A push that a shared wait was told of is for the next one, if nobody has popped it.
  void pass_on(std::string_view queue) {
    if (queue_size(queue) > 0) wake_one(queue);
  }
  // Waits for wake(key), whether the key exists or not. False: over the budget.
  [[nodiscard]] bool wait_for_wake(TableClient& client, std::uint64_t wait, std::string_view key);
  // Counts the key down for everyone who waits for it.
  void wake(std::string_view key) {
    if (!waiters_.empty()) wake_all(key);
  }
  [[nodiscard]] static bool is_waiting(const TableClient& client) {
    return client.first_wait_.client != nullptr || !client.more_waits_.empty();
  }
  void cancel_waits(TableClient& client);
  // Those from one number to another, both included.
  void cancel_waits(TableClient& client, std::uint64_t first, std::uint64_t last);

  // ---- watches: named likewise ----

  // False: over the budget.
  [[nodiscard]] bool watch(TableClient& client, std::uint64_t watch, std::string_view key,
                           bool prefix);
  [[nodiscard]] static bool is_watching(const TableClient& client, std::uint64_t watch);
  [[nodiscard]] static std::size_t watch_count(const TableClient& client) {
    return client.watches_.size();
  }
  void unwatch(TableClient& client, std::uint64_t watch);
  // The bytes of all that watches were told of so far. Whoever makes a change pays for it once, but
  // those who watch are told each time.
  [[nodiscard]] std::uint64_t told() const { return told_; }
  // What a write of so many bytes to that key would add.
  [[nodiscard]] std::size_t bytes_to_tell(std::string_view key, std::size_t value_bytes) const;

  // Forgets the waits and watches of a client.
  void drop(TableClient& client);

  // ---- looking at all of it, in no order ----

  template <typename Visit>  // Visit(string_view key, string_view value, SessionId owner)
  void for_each(Visit visit) const {
    for (const auto& [key, entry] : entries_)
      visit(key, entry.value, entry.owner);
  }
  template <typename Visit>  // Visit(string_view queue, const list<string>& items)
  void for_each_queue(Visit visit) const {
    for (const auto& [queue, items] : queues_)
      visit(queue, items);
  }
  struct Counts {
    std::size_t queues = 0;
    std::size_t waits = 0;
    std::size_t watches = 0;
  };
  [[nodiscard]] Counts counts() const { return {queues_.size(), wait_count_, watch_count_}; }
  // What this table has taken of the budget, counted anew from what it holds: for tests.
  [[nodiscard]] std::size_t count_held_bytes() const;
  // Grows whenever keys or queues change.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  // Of a table that is being loaded.
  void restore_revision(std::uint64_t revision) { revision_ = revision; }

 private:
  struct Entry {
    std::string value;
    SessionId owner = kNoSession;
  };
  using Item = KeyMap<Entry>::value_type;
  using WatchedPrefixes = std::map<std::string, WatchList, std::less<>>;
  using WatchedPrefix = WatchedPrefixes::value_type;

  void sort_keys();
  void set_owner(Item& item, SessionId owner);
  void erase(KeyMap<Entry>::iterator it);
  void note_change(std::string_view key) {
    is_changed_ = true;
    ++generation_;
    if (watch_count_ > 0) changed_.emplace_back(key);
  }
  void tell_watches();
  void tell(const WatchList& watches, std::span<const Change> changes);
  template <typename Map>
  static std::pair<const std::string, WatchList>& list_of(Map& watches, std::string_view key);
  template <typename Map>
  static void erase_list(Map& watches, std::string_view key) {
    watches.erase(watches.find(key));
  }
  [[nodiscard]] std::vector<const WatchedPrefix*> watched_prefixes(std::string_view key) const;
  void tell_of_one(const Change& change);
  void tell_of_many();
  [[nodiscard]] Change current(std::string_view key) const;

  WaitRecord& new_wait(TableClient& client, std::uint64_t id);
  [[nodiscard]] WaitOutcome register_wait(TableClient& client, std::uint64_t wait,
                                          std::span<const std::string_view> keys, bool shared);
  void cancel_wait(TableClient& client, std::uint64_t wait);
  void forget_wait(WaitRecord& wait);
  void release(WaiterList& list, WaiterList::iterator waiter);
  [[nodiscard]] bool register_waiter(WaitRecord& wait, std::string_view key);
  void count_down(WaiterList& list);
  void wake_all(std::string_view key);
  void wake_one(std::string_view queue);
  void unregister(WaitRecord& wait);
  void unregister(WatchRecord& watch);

  Budget& budget_;
  KeyMap<Entry> entries_;
  // Kept from the first list() on: a table that is never listed pays nothing.
  std::optional<std::set<std::string_view>> ordered_;
  std::unordered_map<SessionId, KeySet> owned_;
  KeyMap<std::list<std::string>> queues_;
  KeyMap<WaiterList> waiters_;  // no list is empty
  WaiterList spare_waiters_;    // for the next ones
  KeyMap<WatchList> exact_watches_;
  WatchedPrefixes prefix_watches_;
  std::vector<std::string> changed_;  // watched keys, since the last publish()
  bool is_changed_ = false;
  std::uint64_t revision_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t told_ = 0;
  std::size_t wait_count_ = 0;
  std::size_t watch_count_ = 0;
};

}  // namespace drun::store
