#include "etcd/etcd_watches.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::etcd {
namespace {

constexpr EtcdWatches::Time kStart{std::chrono::hours(1)};
constexpr std::chrono::seconds kLimit{5};

// Of one name; its streams are 10, 11, ...
class WatchMachine {
 public:
  EtcdWatches watches;
  std::string did;
  std::uint64_t stream = 9;

  void remove() {
    if (const auto canceled = watches.remove(7)) did += ", cancels " + std::to_string(*canceled);
  }
  void add() {
    remove();
    did += ", number " + std::to_string(watches.add(7, "key", true));
  }
  void begin() {
    if (state() == "Listed") watches.begin(7, ++stream, kStart + kLimit);
  }
  void receive(const std::string& bytes) {
    EXPECT_TRUE(watches.receive(10, bytes));
    while (const auto line = watches.take_line(10)) {
      did += ", '" + *line + "'";
      watches.note_word(7);
    }
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Absent", "Listed", "Beginning", "Streaming"};
    return kNames[static_cast<int>(watches.state(7))];
  }
  std::string news() {
    const std::string is = state() + (watches.next_due() ? ", due" : "") +
                           (watches.all_stream() ? "" : ", not all stream");
    return news_(is, std::exchange(did, {}));
  }

 private:
  test::News news_;
};

const test::TableEvents<WatchMachine> kEvents = {
    {"add", [](WatchMachine& m) { m.add(); }},
    {"remove", [](WatchMachine& m) { m.remove(); }},
    {"begin", [](WatchMachine& m) { m.begin(); }},
    {"half a line", [](WatchMachine& m) { m.receive("ha"); }},
    {"the other half, and another line", [](WatchMachine& m) { m.receive("lf\nwhole\n"); }},
    {"the connection is over", [](WatchMachine& m) { m.watches.drop_streams(); }}};

const std::vector<test::StateRow> kTable = {
    {"Absent", {}, R"(
  add -> Listed, not all stream, number 1
  remove; begin; half a line; the other half, and another line; the connection is over ->
      nothing
)"},
    {"Listed", {"add"}, R"(
  add -> Listed, not all stream, number 2
  remove -> Absent
  begin -> Beginning, due, not all stream
  half a line; the other half, and another line; the connection is over -> nothing
)"},
    {"Beginning", {"add", "begin"}, R"(
  add -> Listed, not all stream, cancels 10, number 2
  remove -> Absent, cancels 10
  the other half, and another line -> Streaming, 'lf', 'whole'
  the connection is over -> Listed, not all stream
  begin; half a line -> nothing
)"},
    {"Beginning, half a line is there", {"add", "begin", "half a line"}, R"(
  add -> Listed, not all stream, cancels 10, number 2
  remove -> Absent, cancels 10
  the other half, and another line -> Streaming, 'half', 'whole'
  the connection is over -> Listed, not all stream
  begin; half a line -> nothing
)"},
    {"Streaming", {"add", "begin", "the other half, and another line"}, R"(
  add -> Listed, not all stream, cancels 10, number 2
  remove -> Absent, cancels 10
  the other half, and another line -> Streaming, 'lf', 'whole'
  the connection is over -> Listed, not all stream
  begin; half a line -> nothing
)"},
    {"Listed, after a connection", {"add", "begin", "half a line", "the connection is over"}, R"(
  add -> Listed, not all stream, number 2
  remove -> Absent
  begin -> Beginning, due, not all stream
  half a line; the other half, and another line; the connection is over -> nothing
)"}};

TEST(EtcdWatchesTest, DoInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Absent", "Listed", "Beginning", "Streaming"});
}

TEST(EtcdWatchesTest, ANameThatIsWatchedAgainIsAnotherWatch) {
  EtcdWatches watches;
  const auto first = watches.add(7, "a", false);
  (void)watches.remove(7);
  const auto second = watches.add(7, "b", true);
  EXPECT_EQ(watches.find(7, first), nullptr);
  ASSERT_NE(watches.find(7, second), nullptr);
  EXPECT_EQ(watches.find(7, second)->key, "b");
  EXPECT_TRUE(watches.find(7, second)->prefix);
}

TEST(EtcdWatchesTest, ALineThatIsTakenEndsTheStreamOfItsWatch) {
  EtcdWatches watches;
  (void)watches.add(7, "a", false);
  watches.begin(7, 10, kStart);
  EXPECT_TRUE(watches.receive(10, "one\ntwo\n"));
  EXPECT_EQ(watches.take_line(10), "one");
  EXPECT_EQ(watches.remove(7), 10U);
  EXPECT_FALSE(watches.take_line(10)) << "who took the first line has ended it";
  EXPECT_TRUE(watches.receive(10, "three\n")) << "nobody reads it any more";
}

}  // namespace
}  // namespace drun::etcd
