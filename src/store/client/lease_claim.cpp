#include "store/client/lease_claim.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/hex.hpp"
#include "base/random_bytes.hpp"
#include "base/whole_number.hpp"
#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"

namespace drun::store {
namespace {

using Clock = Client::Clock;
using std::chrono::milliseconds;

// A request that does not wait is answered at once; what is left of a time limit may be nothing.
constexpr milliseconds kRequestLimit{5000};
// Between two looks, if the store cannot cancel a wait or there is nothing to wait for.
constexpr milliseconds kPause{200};

Error wrong(const Client& client, const LeaseKeys& keys, std::error_code code,
            const std::string& what) {
  return Error(code, "lease " + quote_bytes(keys.name) + " at " + to_string(client.endpoint()) +
                         ": " + what);
}

std::string about(const LeaseRecord& holder) {
  return "it is held" + (holder.text.empty() ? "" : " by " + quote_bytes(holder.text)) + ", term " +
         std::to_string(holder.term);
}

milliseconds request_limit(Client::Deadline deadline) {
  return std::max(time_left(deadline), kRequestLimit);
}

// Until the holder gives the lease back, for `pause` at the most. An error: the connection's.
Status await_end(Client& client, const std::string& over, milliseconds pause) {
  if (client.version() != TcpStoreVersion::Torch2_2) {
    std::this_thread::sleep_for(std::min(pause, kPause));
    return Done{};
  }
  const Status ended = client.wait({over}, pause);
  if (!ended && (ended.error().code() != Errc::Timeout || !client.connected())) return ended;
  return Done{};
}

std::string random_id() {
  std::array<std::byte, 8> bytes{};
  fill_with_random_bytes(bytes);
  std::string id;
  append_hex(id, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return id;
}

// What remains of one of the lease's earlier terms.
void forget(Client& client, const LeaseKeys& keys, std::int64_t term) {
  for (const std::string& key : {keys.beat(term), keys.over(term)})
    (void)client.delete_key(key, kRequestLimit);
}

}  // namespace

LeaseKeys::LeaseKeys(std::string_view lease_name) : name(lease_name), root("lease/" + name + "/") {}

std::string LeaseKeys::beat(std::int64_t term) const {
  return root + "beat/" + std::to_string(term);
}

std::string LeaseKeys::over(std::int64_t term) const {
  return root + "over/" + std::to_string(term);
}

std::string to_bytes(const LeaseRecord& record) {
  return std::to_string(record.term) + " " + std::to_string(record.time_to_live.count()) + " " +
         record.id + " " + record.text;
}

std::optional<LeaseRecord> parse_lease_record(std::string_view bytes) {
  const auto word = [&]() -> std::string_view {
    const auto end = bytes.find(' ');
    if (end == bytes.npos) return std::exchange(bytes, {}).substr(0, 0);
    const std::string_view found = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    return found;
  };
  const auto term = whole_number<std::int64_t>(word());
  const auto time = whole_number<std::int64_t>(word());
  const std::string_view id = word();
  if (!term || *term < 1 || !time || *time < 1 || id.empty()) return std::nullopt;
  return LeaseRecord{*term, milliseconds(*time), std::string(id), std::string(bytes)};
}

bool LeaseWatch::is_silent(const LeaseRecord& holder, std::string_view beat, Time now) {
  if (holder_ != holder || beat_ != beat) {
    holder_ = holder;
    beat_ = beat;
    since_ = now;
  }
  return now - since_ >= holder.time_to_live;
}

Result<TakenLease> take_lease(Client& client, const LeaseKeys& keys, milliseconds time_to_live,
                              const std::string& text, Client::Deadline deadline) {
  LeaseRecord mine{1, time_to_live, random_id(), text};
  LeaseWatch watch;
  std::string expected;     // of the key: nobody, or who is to be followed
  bool last = false;        // the time is over: no try but this one
  std::int64_t unsure = 0;  // a term whose beat may have been deleted before it was looked at
  for (;;) {
    const auto asked = Clock::now();
    const auto now_held =
        client.compare_set(keys.holder(), expected, to_bytes(mine), request_limit(deadline));
    if (!now_held) return now_held.error();
    if (*now_held == to_bytes(mine)) {
      if (unsure != 0 && unsure != mine.term - 1) forget(client, keys, unsure);
      if (mine.term > 1) forget(client, keys, mine.term - 1);
      return TakenLease{mine.term, asked};
    }
    const bool late = std::exchange(last, Clock::now() >= deadline);
    if (!expected.empty() && *now_held == expected) {  // so it is answered if the key is gone
      if (late) return wrong(client, keys, Errc::Timeout, "timed out: its key comes and goes");
      expected.clear();
      continue;
    }
    const auto holder = parse_lease_record(*now_held);
    if (!holder) return wrong(client, keys, Errc::Malformed, "its key holds something else");
    expected.clear();
    mine.term = 1;

    const auto over = client.check({keys.over(holder->term)}, request_limit(deadline));
    if (!over) return over.error();
    if (unsure != 0 && unsure < holder->term) forget(client, keys, std::exchange(unsure, 0));
    // In one request: who follows the holder deletes the key, and between a look whether it is
    // there and a GET that would cost the connection to a server of torch's.
    const auto beat = client.add(keys.beat(holder->term), 0, request_limit(deadline));
    if (!beat) return beat.error();
    if (*beat == 0) unsure = holder->term;
    if (!late && (*over || watch.is_silent(*holder, std::to_string(*beat), Clock::now()))) {
      expected = *now_held;
      mine.term = holder->term + 1;
      continue;
    }
    const auto left = time_left(deadline);
    if (left.count() == 0)
      return wrong(client, keys, Errc::Timeout, "timed out: " + about(*holder));
    const Status looked =
        await_end(client, keys.over(holder->term),
                  std::min(left, std::max(holder->time_to_live / 3, milliseconds(1))));
    if (!looked) return looked.error();
  }
}

Result<std::string> lease_holder(Client& client, const LeaseKeys& keys, Client::Deadline deadline) {
  for (;;) {
    const auto held = client.try_get(keys.holder(), request_limit(deadline));
    if (!held) return held.error();
    if (*held) {
      const auto holder = parse_lease_record(**held);
      if (!holder) return wrong(client, keys, Errc::Malformed, "its key holds something else");
      const auto over = client.check({keys.over(holder->term)}, request_limit(deadline));
      if (!over) return over.error();
      if (!*over) return holder->text;
    }
    const auto left = time_left(deadline);
    if (left.count() == 0) return wrong(client, keys, Errc::Timeout, "timed out: nobody holds it");
    std::this_thread::sleep_for(std::min(left, kPause / 10));
  }
}

}  // namespace drun::store
