#include "launcher/watch/beat_note.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class Commits final : public rendezvous::KeyValue {
 public:
  void watch(rendezvous::WatchId /*watch*/, std::string /*key*/, bool /*prefix*/) override {}
  void unwatch(rendezvous::WatchId /*watch*/) override {}
  void commit(rendezvous::RequestId /*request*/, rendezvous::Transaction transaction) override {
    for (const auto& write : transaction.writes)
      told.push_back(!write.value
                         ? write.key + " is gone"
                         : write.key + (write.ephemeral ? " " : " for ever ") +
                               std::to_string(rendezvous::decode_beat(*write.value).value().step));
  }
  void close() override {}
  std::vector<std::string> told;
};

class BeatNoteTest : public testing::Test {
 protected:
  std::vector<std::string> write(int round, std::int64_t step) {
    note_.write({round, 0, step, 1'000 * step}, now_);
    return std::exchange(store_.told, {});
  }

  Commits store_;
  BeatNote note_{"train"};
  BeatNote::Time now_{seconds(1'000)};
};

TEST_F(BeatNoteTest, WritesSeldomAndOnlyWhatIsNew) {
  note_.use(store_, "a");
  EXPECT_THAT(write(1, 7), ElementsAre("drun/train/beat/a 7"));
  now_ += seconds(5);
  EXPECT_THAT(write(1, 8), IsEmpty());
  now_ += seconds(5);
  EXPECT_THAT(write(1, 9), ElementsAre("drun/train/beat/a 9"));
  now_ += seconds(60);
  EXPECT_THAT(write(1, 9), IsEmpty());
  EXPECT_THAT(write(1, 10), ElementsAre("drun/train/beat/a 10"));
}

TEST_F(BeatNoteTest, AnotherRoundIsSaidAtOnce) {
  note_.use(store_, "a");
  EXPECT_THAT(write(1, 7), ElementsAre("drun/train/beat/a 7"));
  EXPECT_THAT(write(2, 1), ElementsAre("drun/train/beat/a 1"));
}

// Its rank has ended, or has given its last: nobody is to read that it falls behind.
TEST_F(BeatNoteTest, OneThatIsNotTrueAnyMoreIsErasedOnce) {
  note_.use(store_, "a");
  note_.erase();
  EXPECT_THAT(write(1, 7), ElementsAre("drun/train/beat/a 7"));
  note_.erase();
  note_.erase();
  EXPECT_THAT(std::exchange(store_.told, {}), ElementsAre("drun/train/beat/a is gone"));
  EXPECT_THAT(write(1, 8), ElementsAre("drun/train/beat/a 8"));
}

TEST_F(BeatNoteTest, WithoutAStoreNothingIsWritten) {
  EXPECT_THAT(write(1, 7), IsEmpty());
  note_.use(store_, "a");
  note_.forget_store();
  EXPECT_THAT(write(1, 7), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
