#include "support/store_model.hpp"

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "store/protocol/bytes.hpp"

namespace drun::test {
namespace {

using store::append;
using store::TcpStoreVersion;
using store::tcpstore::Op;
using store::tcpstore::Request;

std::string vec(std::string_view bytes) {
  std::string out;
  store::tcpstore::append_vector(out, bytes);
  return out;
}
std::string num(std::int64_t number) {
  std::string out;
  append(out, number);
  return out;
}

}  // namespace

void StoreModel::apply(std::size_t client, TcpStoreVersion version, const Request& r) {
  if (version != TcpStoreVersion::Torch2_2) cancel(client);
  const std::string key(r.key);
  std::string& reply = out[client];
  switch (r.op) {
    case Op::Set:
      return set(key, std::string(r.value));
    case Op::CompareSet: {
      const bool wins = keys.contains(key) ? keys[key] == r.expected : r.expected.empty();
      if (wins) set(key, std::string(r.value));
      reply += vec(keys.contains(key) ? std::string_view(keys[key]) : r.expected);
      return;
    }
    case Op::Get:
      reply += vec(keys.contains(key) ? keys[key] : "");
      return;
    case Op::Add: {
      const auto sum = add(key, r.number);
      if (!sum) return close(client);
      wake(key);  // an older wait of this very client is answered first
      reply += num(*sum);
      return;
    }
    case Op::Check: {
      bool all = true;
      for (const auto k : r.keys)
        all = all && exists(std::string(k));
      reply += all ? '\0' : '\1';
      return;
    }
    case Op::Wait: {
      Wait wait{client, {}};
      for (const auto k : r.keys)
        if (!exists(std::string(k))) wait.missing.insert(std::string(k));
      if (wait.missing.empty())
        reply += '\0';
      else
        waits.push_back(wait);
      return;
    }
    case Op::GetNumKeys:
      reply += num(static_cast<std::int64_t>(keys.size()));
      return;
    case Op::DeleteKey:
      reply += num(static_cast<std::int64_t>(keys.erase(key)));
      return;
    case Op::Append:
      return set(key, (keys.contains(key) ? keys[key] : "") + std::string(r.value));
    case Op::MultiGet:
      for (const auto k : r.keys)
        reply += vec(keys.contains(std::string(k)) ? keys[std::string(k)] : "");
      return;
    case Op::MultiSet:
      for (std::size_t i = 0; i < r.keys.size(); ++i)
        set(std::string(r.keys[i]), std::string(r.values[i]));
      return;
    case Op::CancelWait:
      cancel(client);
      reply += '\1';
      return;
    case Op::Ping:
      append(reply, r.nonce);
      return;
    case Op::QueuePush:
      queues[key].push_back(std::string(r.value));
      return wake_one(key);
    case Op::QueuePop:
      reply += num(static_cast<std::int64_t>(queues[key].size()));
      if (queues[key].empty()) return;
      reply += vec(queues[key].front());
      queues[key].pop_front();
      return;
    case Op::QueueLen:
      reply += num(static_cast<std::int64_t>(queues[key].size()));
      return;
    case Op::Barrier: {
      const auto sum = add(key, 1);
      if (!sum) return close(client);
      if (*sum < r.number) {
        waits.push_back({client, {key}});
        return;
      }
      reply += '\0';
      return wake(key);
    }
    case Op::ListKeys:  // compared as a set
    case Op::Validate:
      return;
  }
}

void StoreModel::leave(std::size_t client) {
  cancel(client);
  out[client].clear();
  is_closed[client] = false;
}

void StoreModel::set(const std::string& key, const std::string& value) {
  keys[key] = value;
  wake(key);
}

std::optional<std::int64_t> StoreModel::add(const std::string& key, std::int64_t delta) {
  std::int64_t number = 0;
  if (keys.contains(key)) {
    const char* text = keys[key].c_str();
    char* end = nullptr;
    errno = 0;
    number = std::strtoll(text, &end, 10);
    if (end == text || errno != 0) return std::nullopt;
  }
  number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) +
                                     static_cast<std::uint64_t>(delta));
  keys[key] = std::to_string(number);
  return number;
}

void StoreModel::wake(const std::string& key) {
  for (Wait& wait : waits)
    wait.missing.erase(key);
  answer();
}

void StoreModel::wake_one(const std::string& key) {
  for (Wait& wait : waits)
    if (wait.missing.erase(key) > 0) break;
  answer();
}

void StoreModel::answer() {
  for (auto it = waits.begin(); it != waits.end();) {
    if (!it->missing.empty()) {
      ++it;
      continue;
    }
    out[it->client] += '\0';
    it = waits.erase(it);
  }
}

void StoreModel::cancel(std::size_t client) {
  std::erase_if(waits, [&](const Wait& wait) { return wait.client == client; });
}

void StoreModel::close(std::size_t client) {
  cancel(client);
  is_closed[client] = true;
}

}  // namespace drun::test
