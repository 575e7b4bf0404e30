#include "store/table/table.hpp"

#include <cassert>
#include <utility>

namespace drun::store {

// ---- keys ----

const std::string* KeyTable::find(std::string_view key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second.value;
}

void KeyTable::sort_keys() {
  if (ordered_) return;
  ordered_.emplace();
  for (const auto& [key, entry] : entries_)
    ordered_->insert(key);
}

bool KeyTable::lists_more_than(std::size_t most, std::string_view prefix, std::size_t a_key) const {
  if (!ordered_) return entries_.size() * a_key > most;  // all keys have to be sorted for it
  std::size_t bytes = 0;
  for (auto it = ordered_->lower_bound(prefix);
       bytes <= most && it != ordered_->end() && it->starts_with(prefix); ++it)
    bytes += a_key + it->size() + current(*it).value->size();
  return bytes > most;
}

Change KeyTable::current(std::string_view key) const {
  const std::string* value = find(key);
  return {key, value ? std::optional<std::string_view>(*value) : std::nullopt};
}

// ---- changes ----

bool KeyTable::put(std::string_view key, std::string_view value, SessionId owner) {
  if (!put_quietly(key, value, owner)) return false;
  wake(key);
  return true;
}

bool KeyTable::put_quietly(std::string_view key, std::string_view value, SessionId owner) {
  const auto it = entries_.find(key);
  Item* item = it == entries_.end() ? nullptr : &*it;
  if (item == nullptr) {
    if (!budget_.try_take_for(job_of(key), key.size() + value.size() + kOverheadBytes))
      return false;
    item = &*entries_.try_emplace(std::string(key)).first;
    if (ordered_) ordered_->insert(item->first);
  } else {
    const std::size_t old_size = item->second.value.size();
    const std::string_view job = job_of(key);
    if (value.size() > old_size && !budget_.fits_job(job, value.size() - old_size)) return false;
    budget_.give_back_of(job, old_size);
    budget_.take_for(job, value.size());
    // A small value must not keep the memory of a large one.
    if (value.size() < old_size / 2) std::string().swap(item->second.value);
  }
  item->second.value.assign(value);
  if (item->second.owner != owner) set_owner(*item, owner);
  note_change(key);
  return true;
}

bool KeyTable::append(std::string_view key, std::string_view value) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return put(key, value);
  if (!budget_.try_take_for(job_of(key), value.size())) return false;
  it->second.value.append(value);
  if (it->second.owner != kNoSession) set_owner(*it, kNoSession);
  note_change(key);
  wake(key);
  return true;
}

void KeyTable::set_owner(Item& item, SessionId owner) {
  auto& [key, entry] = item;
  if (entry.owner != kNoSession) {
    const auto it = owned_.find(entry.owner);
    it->second.erase(key);
    if (it->second.empty()) owned_.erase(it);
  }
  entry.owner = owner;
  if (owner != kNoSession) owned_[owner].insert(key);
}

bool KeyTable::erase(std::string_view key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return false;
  note_change(key);
  erase(it);
  return true;
}

void KeyTable::erase(KeyMap<Entry>::iterator it) {
  if (it->second.owner != kNoSession) set_owner(*it, kNoSession);
  if (ordered_) ordered_->erase(it->first);
  budget_.give_back_of(job_of(it->first),
                       it->first.size() + it->second.value.size() + kOverheadBytes);
  entries_.erase(it);
}

void KeyTable::erase_owned_by(SessionId owner) {
  for (auto it = owned_.find(owner); it != owned_.end(); it = owned_.find(owner))
    erase(*it->second.begin());
  publish();
}

bool KeyTable::erasing_takes_more_than(std::size_t most, SessionId owner) const {
  const auto it = owned_.find(owner);
  if (it == owned_.end()) return false;
  std::size_t bytes = it->second.size() * kTellingBytes;
  for (auto key = it->second.begin(); key != it->second.end() && bytes <= most; ++key)
    bytes += bytes_to_tell(*key, 0);
  return bytes > most;
}

void KeyTable::clear() {
  for (const auto& [key, entry] : entries_)
    budget_.give_back_of(job_of(key), key.size() + entry.value.size() + kOverheadBytes);
  for (const auto& [queue, items] : queues_)
    for (const std::string& item : items)
      budget_.give_back_of(job_of(queue), queue.size() + item.size() + kOverheadBytes);
  owned_.clear();
  ordered_.reset();
  entries_.clear();
  queues_.clear();
  changed_.clear();
  is_changed_ = false;
}

std::size_t KeyTable::count_held_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, entry] : entries_)
    bytes += key.size() + entry.value.size() + kOverheadBytes;
  for (const auto& [queue, items] : queues_)
    for (const std::string& item : items)
      bytes += queue.size() + item.size() + kOverheadBytes;
  for (const auto& [key, list] : waiters_)
    bytes += list.size() * (key.size() + kOverheadBytes);
  for (const auto& [key, list] : exact_watches_)
    bytes += list.size() * (key.size() + kOverheadBytes);
  for (const auto& [key, list] : prefix_watches_)
    bytes += list.size() * (key.size() + kOverheadBytes);
  return bytes;
}

// ---- queues ----

bool KeyTable::push(std::string_view queue, std::string_view value) {
  if (!budget_.try_take_for(job_of(queue), queue.size() + value.size() + kOverheadBytes))
    return false;
  auto it = queues_.find(queue);
  if (it == queues_.end()) it = queues_.try_emplace(std::string(queue)).first;
  it->second.emplace_back(value);
  ++generation_;
  wake_one(queue);
  return true;
}

std::size_t KeyTable::queue_size(std::string_view queue) const {
  const auto it = queues_.find(queue);
  return it == queues_.end() ? 0 : it->second.size();
}

std::string KeyTable::pop(std::string_view queue) {
  const auto it = queues_.find(queue);
  assert(it != queues_.end());
  std::string value = std::move(it->second.front());
  it->second.pop_front();
  ++generation_;
  budget_.give_back_of(job_of(queue), queue.size() + value.size() + kOverheadBytes);
  if (it->second.empty()) queues_.erase(it);
  return value;
}

// ---- waits ----

namespace {

// Memory that is kept for the next wait: of a client, and of the table.
constexpr std::size_t kKeptRegistrations = 4;
constexpr std::size_t kSpareWaiters = 16 * 1024;

WaitRecord* find_wait(WaitRecord& first, std::map<std::uint64_t, WaitRecord>& more,
                      std::uint64_t id) {
  if (first.client != nullptr && first.id == id) return &first;
  const auto it = more.find(id);
  return it == more.end() ? nullptr : &it->second;
}

}  // namespace

WaitRecord& KeyTable::new_wait(TableClient& client, std::uint64_t id) {
  assert(find_wait(client.first_wait_, client.more_waits_, id) == nullptr);
  const bool is_first = client.first_wait_.client == nullptr;
  WaitRecord& wait = is_first ? client.first_wait_ : client.more_waits_[id];
  wait.client = &client;
  wait.id = id;
  wait.shared = false;
  ++wait_count_;
  return wait;
}

// Precondition: it is in no list any more.
void KeyTable::forget_wait(WaitRecord& wait) {
  --wait_count_;
  if (&wait != &wait.client->first_wait_) {
    wait.client->more_waits_.erase(wait.id);
    return;
  }
  wait.client = nullptr;
  wait.missing = 0;
  wait.registrations.clear();
  if (wait.registrations.capacity() > kKeptRegistrations) {
    std::vector<WaitRecord::Registration>().swap(wait.registrations);
  }
}

bool KeyTable::register_waiter(WaitRecord& wait, std::string_view key) {
  if (!budget_.try_take_for(job_of(key), key.size() + kOverheadBytes)) return false;
  auto it = waiters_.find(key);
  if (it == waiters_.end()) it = waiters_.try_emplace(std::string(key)).first;
  WaiterList& list = it->second;
  if (spare_waiters_.empty()) {
    list.emplace_back();
  } else {
    list.splice(list.end(), spare_waiters_, spare_waiters_.begin());
  }
  list.back() = {&wait, wait.registrations.size()};
  wait.registrations.push_back({&*it, std::prev(list.end())});
  ++wait.missing;
  return true;
}

void KeyTable::release(WaiterList& list, WaiterList::iterator waiter) {
  if (spare_waiters_.size() < kSpareWaiters) {
    spare_waiters_.splice(spare_waiters_.begin(), list, waiter);
  } else {
    list.erase(waiter);
  }
}

KeyTable::WaitOutcome KeyTable::register_wait(TableClient& client, std::uint64_t wait,
                                              std::span<const std::string_view> keys, bool shared) {
  WaitRecord* record = nullptr;
  for (const std::string_view key : keys) {
    if (entries_.contains(key) || queue_size(key) > 0) continue;
    if (record == nullptr) record = &new_wait(client, wait);
    record->shared = shared;
    if (!register_waiter(*record, key)) {
      cancel_wait(client, wait);
      return WaitOutcome::OverBudget;
    }
  }
  return record == nullptr ? WaitOutcome::Done : WaitOutcome::Waiting;
}

bool KeyTable::wait_for_wake(TableClient& client, std::uint64_t wait, std::string_view key) {
  if (register_waiter(new_wait(client, wait), key)) return true;
  cancel_wait(client, wait);
  return false;
}

// Counts down for the first waiter of a list, and tells it when that was its last key.
void KeyTable::count_down(WaiterList& list) {
  const auto [wait, index] = list.front();
  WaitRecord::Registration& registration = wait->registrations[index];
  const std::string& key = registration.list->first;
  budget_.give_back_of(job_of(key), key.size() + kOverheadBytes);
  registration.list = nullptr;
  release(list, list.begin());
  if (--wait->missing > 0) return;
  TableClient& client = *wait->client;
  const std::uint64_t id = wait->id;
  forget_wait(*wait);
  client.on_wait_done(id);
}

void KeyTable::wake_all(std::string_view key) {
  const auto it = waiters_.find(key);
  if (it == waiters_.end()) return;
  while (!it->second.empty())
    count_down(it->second);
  waiters_.erase(it);
}

// A wait that names the queue twice is one waiter all the same.
void KeyTable::wake_one(std::string_view queue) {
  const auto it = waiters_.find(queue);
  if (it == waiters_.end()) return;
  WaiterList& list = it->second;
  const WaitRecord* first = list.front().wait;
  if (first->shared) return first->client->on_push(first->id, it->first);
  for (std::size_t left = first->missing; left > 0 && !list.empty() && list.front().wait == first;
       --left)
    count_down(list);
  if (list.empty()) waiters_.erase(it);
}

void KeyTable::unregister(WaitRecord& wait) {
  for (const WaitRecord::Registration& registration : wait.registrations) {
    if (registration.list == nullptr) continue;
    auto& [key, list] = *registration.list;
    budget_.give_back_of(job_of(key), key.size() + kOverheadBytes);
    release(list, registration.position);
    if (list.empty()) waiters_.erase(waiters_.find(key));
  }
}

void KeyTable::cancel_wait(TableClient& client, std::uint64_t wait) {
  WaitRecord* record = find_wait(client.first_wait_, client.more_waits_, wait);
  if (record == nullptr) return;
  unregister(*record);
  forget_wait(*record);
}

void KeyTable::cancel_waits(TableClient& client) {
  while (!client.more_waits_.empty())
    cancel_wait(client, client.more_waits_.begin()->first);
  if (client.first_wait_.client != nullptr) cancel_wait(client, client.first_wait_.id);
}

void KeyTable::cancel_waits(TableClient& client, std::uint64_t first, std::uint64_t last) {
  for (auto it = client.more_waits_.lower_bound(first);
       it != client.more_waits_.end() && it->first <= last;)
    cancel_wait(client, (it++)->first);
  const WaitRecord& one = client.first_wait_;
  if (one.client != nullptr && one.id >= first && one.id <= last) cancel_wait(client, one.id);
}

void KeyTable::drop(TableClient& client) {
  cancel_waits(client);
  for (auto& [id, watch] : client.watches_)
    unregister(watch);
  client.watches_.clear();
}

}  // namespace drun::store
