#include "store/server/snapshot.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/errors.hpp"
#include "store/protocol/bytes.hpp"

namespace drun::store {
namespace {

class Holder : public SessionHolder {
 public:
  void on_session_ended(control::EndReason) override {}
};

struct Store {
  explicit Store(std::size_t limit = 1'000'000) : budget(limit) {}

  Budget budget;
  KeyTable table{budget};
  Sessions sessions{table, budget};
};

constexpr control::Token kToken{1, 2, 3};

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    const auto* record =
        store.sessions.open(holder, Milliseconds(5000), Milliseconds(1000), kToken, Time());
    session = record->id;
    EXPECT_TRUE(store.table.put("mine", "ephemeral", session));
    EXPECT_TRUE(store.table.put("k", std::string_view("\0v", 2)));
    EXPECT_TRUE(store.table.put("", ""));
    store.table.publish();
    EXPECT_TRUE(store.table.push("q", "one"));
    EXPECT_TRUE(store.table.push("q", ""));
    bytes = snapshot_of(store);
  }

  static Status load(std::string_view snapshot, Time now = Time()) {
    Store fresh;
    return decode_snapshot(snapshot, fresh.table, fresh.sessions, now);
  }
  static std::string snapshot_of(const Store& held) {
    std::string snapshot = encode_snapshot(held.table, held.sessions);
    append_checksum(snapshot);
    return snapshot;
  }
  // The snapshot with its checksum put right.
  static std::string sealed(std::string snapshot) {
    snapshot.resize(snapshot.size() - 8);
    append_checksum(snapshot);
    return snapshot;
  }

  Store store;
  Holder holder;
  SessionId session = 0;
  std::string bytes;
};

TEST_F(SnapshotTest, EverythingComesBack) {
  Store loaded;
  ASSERT_TRUE(decode_snapshot(bytes, loaded.table, loaded.sessions, Time()));
  EXPECT_EQ(loaded.table.size(), 3U);
  EXPECT_EQ(*loaded.table.find("k"), std::string("\0v", 2));
  EXPECT_EQ(*loaded.table.find(""), "");
  EXPECT_EQ(loaded.table.queue_size("q"), 2U);
  EXPECT_EQ(loaded.table.pop("q"), "one");
  EXPECT_EQ(loaded.table.pop("q"), "");
  EXPECT_EQ(loaded.table.revision(), store.table.revision());
  EXPECT_EQ(loaded.budget.used() + KeyTable::kOverheadBytes * 2 + 5, store.budget.used());
}

TEST_F(SnapshotTest, ASessionLivesForItsWholeTimeAndCanBeResumed) {
  const Time later = Time() + Milliseconds(1'000'000);
  Store loaded;
  ASSERT_TRUE(decode_snapshot(bytes, loaded.table, loaded.sessions, later));
  loaded.sessions.expire(later + Milliseconds(4999));
  EXPECT_NE(loaded.table.find("mine"), nullptr);
  EXPECT_TRUE(loaded.sessions.resume(holder, session, kToken, later + Milliseconds(4999)));
  loaded.sessions.close(session);
  EXPECT_EQ(loaded.table.find("mine"), nullptr);

  Store abandoned;
  ASSERT_TRUE(decode_snapshot(bytes, abandoned.table, abandoned.sessions, later));
  abandoned.sessions.expire(later + Milliseconds(5000));
  EXPECT_EQ(abandoned.table.find("mine"), nullptr);
}

TEST_F(SnapshotTest, AnEmptyStoreHasASnapshotToo) {
  Store empty;
  EXPECT_TRUE(load(snapshot_of(empty)));
}

TEST_F(SnapshotTest, EveryDamagedByteAndEveryCutIsFound) {
  ASSERT_TRUE(load(bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 0x10;
    EXPECT_FALSE(load(changed)) << "byte " << i;
    EXPECT_FALSE(load(std::string_view(bytes).substr(0, i))) << "cut to " << i;
  }
  EXPECT_FALSE(load(bytes + '\0'));
  EXPECT_EQ(load("").error().code(), Errc::SnapshotDamaged);
  EXPECT_EQ(load("something else altogether, and long enough").error().what(),
            "not a snapshot of a drun store");
}

TEST_F(SnapshotTest, ContentsThatCannotBeAreRefusedThoughTheChecksumIsRight) {
  ASSERT_TRUE(load(sealed(bytes)));
  int accepted = 0;
  for (std::size_t i = 20; i + 8 < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = '\xFF';
    if (load(sealed(changed))) ++accepted;  // within a key, a value, a token or the revision
  }
  EXPECT_LT(accepted, 60);
}

TEST_F(SnapshotTest, AnotherFormatVersionIsNamed) {
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(load(sealed(newer)).error().code(), Errc::Unsupported);
}

TEST_F(SnapshotTest, MoreThanTheLimitIsRefused) {
  for (std::size_t limit = 0; limit < store.budget.used(); limit += 50) {
    Store small(limit);
    const Status status = decode_snapshot(bytes, small.table, small.sessions, Time());
    ASSERT_FALSE(status) << limit;
    EXPECT_EQ(status.error().code(), Errc::LimitExceeded);
  }
}

TEST_F(SnapshotTest, TheChecksumIsCrc64Xz) {
  EXPECT_EQ(crc64("123456789"), 0x995DC9BBDF1939FAU);
}

}  // namespace
}  // namespace drun::store
