#include "store/server/newcomers.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using std::chrono::milliseconds;

struct Guest {
  std::string name;
  bool proven = false;
  bool welcome = false;  // though it has no token

  [[nodiscard]] bool is_proven() const { return proven; }
  [[nodiscard]] bool is_welcome() const { return proven || welcome; }
};

class NewcomersTest : public testing::Test {
 protected:
  Guest& come(const std::string& name, bool owes_token = true) {
    Guest& guest = guests_.emplace_back();
    guest.name = name;
    numbers_[name] = newcomers_.came(guest, now_, owes_token);
    return guest;
  }
  void wait(int ms) { now_ += milliseconds(ms); }
  static std::string name_of(const Guest* guest) { return guest == nullptr ? "" : guest->name; }
  std::string silent() { return name_of(newcomers_.newest_silent(now_)); }

  Newcomers<Guest> newcomers_;
  std::deque<Guest> guests_;
  std::map<std::string, Newcomers<Guest>::Number> numbers_;
  Time now_ = Time() + milliseconds(100'000);
};

// ---- strangers ----

TEST_F(NewcomersTest, TheOldestThatOwesATokenIsTheStranger) {
  EXPECT_EQ(newcomers_.oldest_stranger(nullptr), nullptr);
  come("a", false);
  EXPECT_EQ(newcomers_.oldest_stranger(nullptr), nullptr);
  const Guest& b = come("b");
  come("c");
  EXPECT_EQ(name_of(newcomers_.oldest_stranger(nullptr)), "b");
  EXPECT_EQ(name_of(newcomers_.oldest_stranger(&b)), "c") << "whoever asks stays";
  newcomers_.left(numbers_["b"]);
  EXPECT_EQ(name_of(newcomers_.oldest_stranger(nullptr)), "c");
}

TEST_F(NewcomersTest, WhoHasShownItsTokenOrNeedsNoneStays) {
  Guest& a = come("a");
  come("b").welcome = true;
  a.proven = true;
  EXPECT_EQ(newcomers_.oldest_stranger(nullptr), nullptr);
  a.proven = false;
  EXPECT_EQ(newcomers_.oldest_stranger(nullptr), nullptr) << "it was looked at once";
}

TEST_F(NewcomersTest, BehindAFewThatOweNothingNobodyIsLookedFor) {
  for (int i = 0; i < Newcomers<Guest>::kMostSilentClients; ++i)
    come("worker").welcome = true;
  come("a");
  EXPECT_EQ(newcomers_.oldest_stranger(nullptr), nullptr);
  guests_.front().proven = true;
  EXPECT_EQ(name_of(newcomers_.oldest_stranger(nullptr)), "a");
}

// ---- the silent ----

TEST_F(NewcomersTest, NobodyGoesBeforeItHadTimeToSpeak) {
  come("a");
  EXPECT_EQ(silent(), "");
  wait(999);
  EXPECT_EQ(silent(), "");
  wait(1);
  EXPECT_EQ(silent(), "a");
}

TEST_F(NewcomersTest, OfTheSilentTheNewestGoes) {
  come("a");
  come("b");
  come("c");
  wait(1'000);
  EXPECT_EQ(silent(), "c");
  newcomers_.left(numbers_["c"]);
  EXPECT_EQ(silent(), "b");
  newcomers_.has_spoken(numbers_["b"]);
  EXPECT_EQ(silent(), "a");
}

// Others keep coming: what has settled is counted now and then.
TEST_F(NewcomersTest, InACrowdTheNewestThatHadItsTimeGoes) {
  come("a");
  EXPECT_EQ(silent(), "") << "counted";
  for (const char* name : {"b", "c", "d"}) {
    wait(400);
    come(name);
    EXPECT_EQ(silent(), name == std::string("d") ? "a" : "");
  }
}

// ---- the token is owed ----

TEST_F(NewcomersTest, EachIsOverdueOnceTheOldestFirst) {
  constexpr milliseconds kLimit{300};
  EXPECT_FALSE(newcomers_.next_overdue(kLimit));
  come("a");
  come("nobody", false);
  wait(100);
  come("b");
  EXPECT_EQ(newcomers_.next_overdue(kLimit), now_ + milliseconds(200));
  wait(199);
  EXPECT_EQ(newcomers_.take_overdue(now_, kLimit), nullptr);
  wait(1);
  EXPECT_EQ(name_of(newcomers_.take_overdue(now_, kLimit)), "a");
  EXPECT_EQ(newcomers_.take_overdue(now_, kLimit), nullptr);
  wait(100);
  EXPECT_EQ(name_of(newcomers_.take_overdue(now_, kLimit)), "b");
  EXPECT_FALSE(newcomers_.next_overdue(kLimit));
}

}  // namespace
}  // namespace drun::store
