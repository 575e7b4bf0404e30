// The snapshot's file, and how it is replaced.
#include "store/server/snapshot_writer.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/held_call.hpp"
#include "support/hung_folder.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::store {
namespace {

using testing::HasSubstr;

constexpr std::size_t kLarge = 4 * 1024 * 1024;

struct Store {
  Budget budget{std::size_t{1} << 30};
  KeyTable table{budget};
  Sessions sessions{table, budget};
};

class SnapshotWriterTest : public testing::Test {
 protected:
  SnapshotFile open() {
    std::string first = encode_snapshot(store.table, store.sessions);
    append_checksum(first);
    return SnapshotFile::open(path, first).value();
  }
  // Until what was started is over.
  static Status result_of(SnapshotWriter& writer) {
    while (writer.is_busy())
      std::this_thread::yield();
    return writer.take_result().value();
  }
  // What a store that starts with the file has under the key.
  std::string held(std::string_view key) const {
    Store loaded;
    const Status good =
        decode_snapshot(read_file(path).value(), loaded.table, loaded.sessions, Time());
    EXPECT_TRUE(good) << good.error().what();
    const std::string* value = good ? loaded.table.find(key) : nullptr;
    return value != nullptr ? *value : "nothing";
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(directory.file("")), {});
  }
  void put(std::string_view key, std::string_view value) {
    ASSERT_TRUE(store.table.put(key, value));
    store.table.publish();
  }

  test::TemporaryDirectory directory;
  std::string path = directory.file("snapshot");
  Store store;
};

TEST_F(SnapshotWriterTest, AFileIsOneStoresUntilThatIsGone) {
  const std::string bytes = "first";
  {
    auto mine = SnapshotFile::open(path, bytes);
    ASSERT_TRUE(mine) << mine.error().what();
    EXPECT_EQ(read_file(path).value(), "first");
    const auto other = SnapshotFile::open(path, bytes);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().what(), "another store uses the snapshot " + path);

    const std::string next = "second";
    auto replacement = mine->begin();
    ASSERT_TRUE(replacement);
    EXPECT_FALSE(mine->begin()) << "one at a time";
    Status written = mine->write(*replacement, next);
    EXPECT_FALSE(SnapshotFile::open(path, bytes)) << "the new file, at every moment";
    ASSERT_TRUE(mine->finish(std::move(*replacement), std::move(written)));
    EXPECT_EQ(read_file(path).value(), "second");
    EXPECT_FALSE(SnapshotFile::open(path, bytes));
  }
  EXPECT_TRUE(SnapshotFile::open(path, bytes));
  EXPECT_EQ(read_file(path).value(), "second") << "what is there is not created";
  EXPECT_EQ(files(), 1);
}

TEST_F(SnapshotWriterTest, AFileThatIsReplacedBetweenOpeningAndLockingIsNotTheOneToLock) {
  (void)open();
  std::optional<SnapshotFile> other;
  const auto opens = [&] { return SnapshotFile::open(path, "") ? 1 : 0; };
  const auto opened = test::held_at_call(SYS_flock, opens, [&] {
    other.emplace(open());
    auto next = other->begin().value();
    Status written = other->write(next, "new");
    EXPECT_TRUE(other->finish(std::move(next), std::move(written)));
  });
  if (!opened) GTEST_SKIP() << "no debugger is allowed here";
  EXPECT_TRUE(other);
  EXPECT_EQ(opened, 0) << "two stores would have it";
}

TEST_F(SnapshotWriterTest, OneThatAnotherHasMadeMeanwhileIsTakenAsItIs) {
#ifdef SYS_access
  constexpr long kLook = SYS_access;
#else
  constexpr long kLook = SYS_faccessat;
#endif
  const auto opens = [&] { return SnapshotFile::open(path, "mine") ? 1 : 0; };
  const auto opened = test::held_at_call(kLook, opens, [&] { std::ofstream(path) << "theirs"; });
  if (!opened) GTEST_SKIP() << "no debugger is allowed here";
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(read_file(path).value(), "theirs");
  EXPECT_EQ(files(), 1) << "what was begun is taken away";
}

// Whoever removed the file by hand has let another store begin one.
TEST_F(SnapshotWriterTest, WhatOthersHaveMadeInItsPlaceIsNotWrittenTo) {
  const std::string theirs = directory.file("theirs");
  const std::string temporary = path + ".tmp";
  const auto refused = [&] {
    const auto opened = SnapshotFile::open(path, "secret");
    return opened ? std::string("opened") : opened.error().what();
  };
  std::ofstream(theirs) << "theirs";
  std::filesystem::create_symlink(theirs, temporary);
  EXPECT_THAT(refused(), HasSubstr("create " + temporary));
  std::filesystem::remove(temporary);
  std::filesystem::create_hard_link(theirs, temporary);
  EXPECT_THAT(refused(), HasSubstr("which somebody else has made"));
  EXPECT_EQ(std::filesystem::file_size(theirs), 6U);
  std::filesystem::remove(temporary);
  std::ofstream(temporary) << "left behind";
  std::filesystem::permissions(temporary, std::filesystem::perms::all);
  SnapshotWriter writer(open());
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(SnapshotWriterTest, AFileThatAnotherStoreHasBegunIsLeftToIt) {
  const std::string bytes = "mine";
  const std::string others = "the other's";
  auto mine = SnapshotFile::open(path, bytes).value();
  std::filesystem::remove(path);
  const auto other = SnapshotFile::open(path, others);
  ASSERT_TRUE(other) << other.error().what();
  auto replacement = mine.begin().value();
  Status written = mine.write(replacement, bytes);
  const Status finished = mine.finish(std::move(replacement), std::move(written));
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().what(), HasSubstr("another store uses"));
  EXPECT_EQ(read_file(path).value(), "the other's");
  EXPECT_EQ(files(), 1);
}

TEST_F(SnapshotWriterTest, WritesTheStateOfTheMoment) {
  SnapshotWriter writer(open());
  put("large", std::string(kLarge, 'x'));
  put("k", "before");
  writer.start(store.table, store.sessions);
  put("k", "after");
  const Status written = result_of(writer);
  EXPECT_TRUE(written) << written.error().what();
  EXPECT_FALSE(writer.take_result());
  EXPECT_EQ(held("k"), "before");
  EXPECT_EQ(held("large").size(), kLarge);
  EXPECT_FALSE(SnapshotFile::open(path, "")) << "the lock came along";
  EXPECT_TRUE(writer.write_now(store.table, store.sessions));
  EXPECT_EQ(held("k"), "after");
  EXPECT_EQ(files(), 1);
}

TEST_F(SnapshotWriterTest, SaysOnceThatItCouldNotBegin) {
  std::filesystem::create_directory(directory.file("folder"));
  path = directory.file("folder/snapshot");
  SnapshotWriter writer(open());
  std::filesystem::rename(directory.file("folder"), directory.file("elsewhere"));
  writer.start(store.table, store.sessions);
  const Status result = result_of(writer);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what(), HasSubstr("create"));
  EXPECT_FALSE(writer.take_result());
}

// As a network file system whose server is gone; the store's clients are not to notice.
TEST_F(SnapshotWriterTest, AFileSystemThatHangsDoesNotHoldUpTheServer) {
  const std::string hung_place = directory.file("hung");
  const std::string folder = directory.file("folder");
  for (const auto& each : {hung_place, folder})
    std::filesystem::create_directory(each);
  test::HungFolder hung(hung_place);
  if (!hung.hangs()) GTEST_SKIP() << "may not mount a file system of its own";
  path = folder + "/snapshot";
  SnapshotWriter writer(open());
  ASSERT_TRUE(hung.cover(folder));
  auto started = std::async(std::launch::async, [&] { writer.start(store.table, store.sessions); });
  EXPECT_EQ(started.wait_for(test::kPatience), std::future_status::ready);
  hung.end();
  started.get();
  EXPECT_FALSE(result_of(writer));
}

// No address space has room for the stack of its thread.
TEST_F(SnapshotWriterTest, WithoutAThreadItSaysSoAndTheNextOneMayWork) {
  SnapshotWriter writer(open());
  put("k", "v");
  pthread_attr_t before{};
  pthread_attr_t huge{};
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 52), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  writer.start(store.table, store.sessions);
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  const Status failed = result_of(writer);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), std::errc::resource_unavailable_try_again);
  EXPECT_THAT(failed.error().what(), HasSubstr(path));
  EXPECT_EQ(files(), 1) << "what it had begun is removed";
  writer.start(store.table, store.sessions);
  EXPECT_TRUE(result_of(writer));
  EXPECT_EQ(held("k"), "v");
}

TEST_F(SnapshotWriterTest, TheLastOneComesBehindOneUnderWay) {
  put("large", std::string(kLarge, 'x'));
  SnapshotWriter writer(open());
  writer.start(store.table, store.sessions);
  put("k", "last");
  EXPECT_TRUE(writer.write_now(store.table, store.sessions));
  EXPECT_EQ(held("k"), "last");
  EXPECT_FALSE(writer.is_busy());
  EXPECT_FALSE(writer.take_result());
  EXPECT_EQ(files(), 1);
}

// While files may have 64 KiB.
TEST_F(SnapshotWriterTest, AWriteThatFailsSaysWhyAndLosesNoSnapshot) {
  put("k", "small");
  SnapshotWriter writer(open());
  put("large", std::string(kLarge, 'x'));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit limited{64 * 1024, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  writer.start(store.table, store.sessions);
  const Status failed = result_of(writer);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), std::errc::file_too_large);
  EXPECT_EQ(failed.error().what(), "write " + path + ".tmp: File too large");
  EXPECT_EQ(held("k"), "small");
  EXPECT_EQ(files(), 1) << "what it had begun is removed";
  writer.start(store.table, store.sessions);
  EXPECT_TRUE(result_of(writer)) << "and the next one may work";
  EXPECT_EQ(held("large").size(), kLarge);
}

}  // namespace
}  // namespace drun::store
