// One connection as the key table knows it, and the table's records of its waits and watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/table/key_hash.hpp"

namespace drun::store {

class TableClient;

// Lookups by string_view without making a string.
template <typename T>
using KeyMap = std::unordered_map<std::string, T, KeyHash, std::equal_to<>>;
using KeySet = std::unordered_set<std::string_view, KeyHash>;

struct Change {
  std::string_view key;
  std::optional<std::string_view> value;  // nullopt: deleted

  bool operator==(const Change&) const = default;
};

// One key of one wait; a key's waiters are in the order of arrival.
struct WaitRecord;
struct Waiter {
  WaitRecord* wait = nullptr;
  std::size_t index = 0;  // in WaitRecord::registrations
};
using WaiterList = std::list<Waiter>;

struct WaitRecord {
  struct Registration {
    std::pair<const std::string, WaiterList>* list = nullptr;  // null: counted down already
    WaiterList::iterator position;
  };
  TableClient* client = nullptr;
  std::uint64_t id = 0;
  std::size_t missing = 0;
  bool shared = false;
  std::vector<Registration> registrations;
};

struct WatchRecord;
using WatchList = std::list<WatchRecord*>;

struct WatchRecord {
  TableClient* client = nullptr;
  std::uint64_t id = 0;
  bool prefix = false;
  std::pair<const std::string, WatchList>* list = nullptr;
  WatchList::iterator position;
};

// What one request changed under the watches of one key or prefix.
struct Publication {
  std::uint64_t revision = 0;
  std::span<const Change> changes;
  std::size_t bytes = 0;  // keys and values
  // The watchers' own: null at first, the same for all of them, who may keep it.
  std::shared_ptr<std::string> encoded = nullptr;
};

// The callbacks must not call the table.
class TableClient {
 public:
  TableClient() = default;
  TableClient(const TableClient&) = delete;
  TableClient& operator=(const TableClient&) = delete;
  // Precondition: KeyTable::drop() was called, or there are neither waits nor watches.
  virtual ~TableClient() = default;

  // The wait that was registered as `wait` is over: all its keys are there.
  virtual void on_wait_done(std::uint64_t wait) = 0;
  // Something was put into a queue for which a shared wait waits: it goes on.
  virtual void on_push([[maybe_unused]] std::uint64_t wait,
                       [[maybe_unused]] std::string_view queue) {}
  // What one request changed under a watch; the views die with the call.
  virtual void on_changes(std::uint64_t watch, Publication& publication) = 0;
  // Sends what is to be sent to it and then `bytes`, as far as that is possible at once; how many
  // of `bytes` went, so that they need not be copied.
  virtual std::size_t send_now([[maybe_unused]] std::string_view bytes) { return 0; }

 private:
  friend class KeyTable;

  // Most clients have one wait at a time, and one after the other: it needs no memory of its own.
  WaitRecord first_wait_;  // without a client: unused
  std::map<std::uint64_t, WaitRecord> more_waits_;
  std::map<std::uint64_t, WatchRecord> watches_;
};

}  // namespace drun::store
