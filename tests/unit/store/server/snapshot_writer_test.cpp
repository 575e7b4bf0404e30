// The snapshot's file and who writes it: a thread for a small one, a child process for a large one.
#include "store/server/snapshot_writer.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::store {
namespace {

using testing::HasSubstr;

struct Store {
  Budget budget{std::size_t{1} << 30};
  KeyTable table{budget};
  Sessions sessions{table, budget};
};

SnapshotFile::Content content(const std::string& bytes) {
  return [&bytes](const SnapshotSink& sink) { return sink(bytes); };
}

class SnapshotWriterTest : public testing::Test {
 protected:
  SnapshotFile open() {
    return SnapshotFile::open(path,
                              [&](const SnapshotSink& sink) {
                                return write_snapshot(store.table, store.sessions, sink);
                              })
        .value();
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
    auto mine = SnapshotFile::open(path, content(bytes));
    ASSERT_TRUE(mine) << mine.error().what();
    EXPECT_EQ(read_file(path).value(), "first");
    const auto other = SnapshotFile::open(path, content(bytes));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().what(), "another store uses the snapshot " + path);

    const std::string next = "second";
    auto replacement = mine->begin();
    ASSERT_TRUE(replacement);
    EXPECT_FALSE(mine->begin()) << "one at a time";
    const auto outcome = mine->write(*replacement, content(next));
    EXPECT_FALSE(SnapshotFile::open(path, content(bytes))) << "the new file, at every moment";
    ASSERT_TRUE(mine->finish(std::move(*replacement), outcome));
    EXPECT_EQ(read_file(path).value(), "second");
    EXPECT_FALSE(SnapshotFile::open(path, content(bytes)));
  }
  EXPECT_TRUE(SnapshotFile::open(path, content(bytes)));
  EXPECT_EQ(read_file(path).value(), "second") << "what is there is not created";
  EXPECT_EQ(files(), 1);
}

// Whoever removed the file by hand has let another store begin one.
TEST_F(SnapshotWriterTest, AFileThatAnotherStoreHasBegunIsLeftToIt) {
  const std::string bytes = "mine";
  const std::string others = "the other's";
  auto mine = SnapshotFile::open(path, content(bytes)).value();
  std::filesystem::remove(path);
  const auto other = SnapshotFile::open(path, content(others));
  ASSERT_TRUE(other) << other.error().what();
  auto replacement = mine.begin().value();
  const auto outcome = mine.write(replacement, content(bytes));
  const Status finished = mine.finish(std::move(replacement), outcome);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().what(), HasSubstr("another store uses"));
  EXPECT_EQ(read_file(path).value(), "the other's");
  EXPECT_EQ(files(), 1);
}

TEST_F(SnapshotWriterTest, WritesTheStateOfTheMoment) {
  for (const std::size_t size : {std::size_t{1}, 2 * SnapshotWriter::kLargeBytes}) {
    SCOPED_TRACE(size);
    SnapshotWriter writer(open());
    put("large", std::string(size, 'x'));
    put("k", "before");
    writer.start(store.table, store.sessions, store.budget.used());
    put("k", "after");
    const Status written = result_of(writer);
    EXPECT_TRUE(written) << written.error().what();
    EXPECT_FALSE(writer.take_result());
    EXPECT_EQ(held("k"), "before");
    EXPECT_EQ(held("large").size(), size);
    EXPECT_FALSE(SnapshotFile::open(path, content(path))) << "the lock came along";
    EXPECT_TRUE(writer.write_now(store.table, store.sessions));
    EXPECT_EQ(held("k"), "after");
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(SnapshotWriterTest, TheLastOneComesBehindOneUnderWay) {
  put("large", std::string(2 * SnapshotWriter::kLargeBytes, 'x'));
  SnapshotWriter writer(open());
  writer.start(store.table, store.sessions, store.budget.used());
  put("k", "last");
  EXPECT_TRUE(writer.write_now(store.table, store.sessions));
  EXPECT_EQ(held("k"), "last");
  EXPECT_FALSE(writer.is_busy());
  EXPECT_FALSE(writer.take_result());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  EXPECT_EQ(files(), 1);
}

// The limit of a file's size, which ends a process or is an error of write().
class SnapshotWriterLimitTest : public SnapshotWriterTest {
 protected:
  // How a large write ends while files may have 64 KiB.
  Status limited_write(SnapshotWriter& writer) {
    rlimit before{};
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit limited{64 * 1024, before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
    writer.start(store.table, store.sessions, store.budget.used());
    Status result = result_of(writer);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    return result;
  }
};

TEST_F(SnapshotWriterLimitTest, AChildThatIsKilledLosesNoSnapshot) {
  put("k", "small");
  SnapshotWriter writer(open());
  put("large", std::string(2 * SnapshotWriter::kLargeBytes, 'x'));
  const Status killed = limited_write(writer);
  ASSERT_FALSE(killed);
  EXPECT_THAT(killed.error().what(), HasSubstr("ended by signal " + std::to_string(SIGXFSZ)));
  EXPECT_EQ(held("k"), "small");
  EXPECT_EQ(files(), 1) << "what it had begun is removed";
  writer.start(store.table, store.sessions, store.budget.used());
  EXPECT_TRUE(result_of(writer)) << "and the next one may work";
  EXPECT_EQ(held("large").size(), 2 * SnapshotWriter::kLargeBytes);
}

TEST_F(SnapshotWriterLimitTest, AChildSaysWhyItCouldNot) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  SnapshotWriter writer(open());
  put("large", std::string(2 * SnapshotWriter::kLargeBytes, 'x'));
  const Status failed = limited_write(writer);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), std::errc::file_too_large);
  EXPECT_EQ(failed.error().what(), "write " + path + ".tmp: File too large");
  EXPECT_EQ(held("large"), "nothing");
  EXPECT_EQ(files(), 1);
  std::signal(SIGXFSZ, before);
}

}  // namespace
}  // namespace drun::store
