// Fuzz target: the loader of snapshots.
//
// Input: u8, bytes. Odd: the bytes are a file as it is; else they are a body, and get the head and
// the checksum that belong to it. What was loaded must be what its own snapshot says.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "store/protocol/bytes.hpp"
#include "store/server/snapshot.hpp"

namespace drun::fuzz {
namespace {

constexpr std::size_t kLimit = 64 * 1024;

struct Store {
  store::Budget budget{kLimit};
  store::KeyTable table{budget};
  store::Sessions sessions{table, budget};

  // Everything in it, in one order.
  [[nodiscard]] std::vector<std::string> contents() const {
    std::vector<std::string> lines{"revision " + std::to_string(table.revision())};
    table.for_each([&](std::string_view key, std::string_view value, store::SessionId owner) {
      lines.push_back("key " + std::to_string(key.size()) + ' ' + std::string(key) + ' ' +
                      std::string(value) + ' ' + std::to_string(owner));
    });
    table.for_each_queue([&](std::string_view queue, const auto& items) {
      std::string line = "queue " + std::to_string(queue.size()) + ' ' + std::string(queue);
      for (const std::string& item : items)
        line += ' ' + std::to_string(item.size()) + ' ' + item;
      lines.push_back(line);
    });
    sessions.for_each([&](const store::Sessions::Record& record) {
      lines.push_back("session " + std::to_string(record.id) + ' ' +
                      std::string(record.token.begin(), record.token.end()) + ' ' +
                      std::to_string(record.ttl.count()) + ' ' +
                      std::to_string(record.grace.count()));
    });
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

std::string with_frame(std::string_view body) {
  std::string file("drunsnap");
  store::append(file, std::uint32_t{1});
  store::append(file, static_cast<std::uint64_t>(body.size()));
  file += body;
  store::append_checksum(file);
  return file;
}

void load(std::string_view input) {
  Source source(input);
  const bool as_it_is = source.u8() % 2 == 1;
  const std::string_view rest = source.rest();
  const std::string file = as_it_is ? std::string(rest) : with_frame(rest);
  Store loaded;
  const Status status = store::decode_snapshot(file, loaded.table, loaded.sessions, {});
  const std::size_t held =
      loaded.table.count_held_bytes() + loaded.sessions.size() * store::Sessions::kOverheadBytes;
  require(loaded.budget.used() == held, "what is held is what was counted");
  require(held <= kLimit, "no more is held than the limit");
  if (!status) {
    require(!status.error().what().empty(), "an error says what is wrong");
    return;
  }
  Store again;
  std::string written = store::encode_snapshot(loaded.table, loaded.sessions);
  store::append_checksum(written);
  require(store::decode_snapshot(written, again.table, again.sessions, {}).ok(), "can be loaded");
  require(again.contents() == loaded.contents(), "holds the same");
  struct Holder : store::SessionHolder {
    void on_session_ended(store::control::EndReason) override {}
  } holder;
  const std::size_t sessions = loaded.sessions.size();
  const auto* opened = loaded.sessions.open(holder, {}, {}, {}, {});
  if (opened != nullptr) {
    require(opened->id != store::kNoSession, "a session has a number");
    require(loaded.sessions.size() == sessions + 1, "and one of its own");
  }
  // Every session ends when its time is up, and takes its keys along.
  loaded.sessions.expire(store::Time::max());
  require(loaded.sessions.size() == 0, "no session is for ever");
  require(loaded.budget.used() == loaded.table.count_held_bytes(), "what is left was counted");
  loaded.table.for_each([](std::string_view, std::string_view, store::SessionId owner) {
    require(owner == store::kNoSession, "a key goes with its session");
  });
}

}  // namespace
}  // namespace drun::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drun::fuzz::load(drun::fuzz::as_text(data, size));
  return 0;
}
