#include "store/client/inquiry_fsm.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Kind = Whereabouts::Kind;
using Time = InquiryFsm::Time;

// A machine, its clock, and the server's end of its connection.
struct Fixture {
  InquiryFsm fsm{{"drun/a/", 77}};
  Time now{1h};
  std::string bytes;

  void connect(std::string_view peer = "10.0.0.1") { fsm.on_connected("10.0.0.9", peer, now); }
  // The questions that it has sent.
  std::vector<control::Find> sent() {
    bytes = fsm.take_output();
    std::string_view rest = bytes;
    if (control::may_be_opening(rest) && rest.size() >= control::kOpeningBytes)
      rest.remove_prefix(control::kOpeningBytes);
    std::vector<control::Find> result;
    while (!rest.empty()) {
      const auto frame = control::next_frame(rest, 1000);
      control::Request request;
      EXPECT_EQ(control::decode_request(frame.frame, 10, request), control::DecodeStatus::Ok);
      if (const auto* find = std::get_if<control::Find>(&request)) result.push_back(*find);
      rest.remove_prefix(frame.size);
    }
    return result;
  }
  void reply(const control::Reply& message) {
    std::string answer;
    control::encode(answer, 1, message);
    fsm.on_received(answer, now);
  }
  void welcome(std::uint16_t version = 3) { reply(control::Welcome{version, 1000, 100, 500, 100}); }
  void due() {
    now = *fsm.next_deadline();
    fsm.on_time(now);
  }
  void open() {
    fsm.start(now);
    connect();
    (void)sent();
    welcome();
  }
};

TEST(InquiryFsmTest, AsksAgainAndAgain) {
  Fixture f;
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
  f.fsm.start(f.now);
  EXPECT_EQ(f.fsm.answer().kind, Kind::Unknown);
  ASSERT_TRUE(f.fsm.wanted_connection());
  f.connect();
  auto questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].generation, 0U);
  EXPECT_EQ(questions[0].job, "drun/a/");
  EXPECT_EQ(questions[0].founders, 77U);
  f.welcome();
  f.reply(control::Moved{});
  EXPECT_EQ(f.fsm.answer().kind, Kind::Waits);
  const Time asked = f.now;
  f.due();
  EXPECT_EQ(f.now - asked, 1s);
  EXPECT_EQ(f.sent().size(), 1U);
}

struct Row {
  const char* what;
  control::Reply reply;
  Whereabouts expected;
  const char* peer = "10.0.0.1";
};

TEST(InquiryFsmTest, UnderstandsWhatItIsTold) {
  const std::vector<Row> rows = {
      {"it waits", control::Moved{}, {Kind::Waits, "", 0, {}}},
      {"here", control::Moved{3, "", 0}, {Kind::Here, "", 3, {}}},
      {"there", control::Moved{3, "10.0.0.7", 8}, {Kind::There, "", 3, {"10.0.0.7", 8}}},
      {"a store is looked for", control::Moved{3, "", 1}, {Kind::Sought, "", 3, {}}},
      {"a name is no place",
       control::Moved{3, "example.org", 8},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"nor is no port",
       control::Moved{3, "10.0.0.7", 0},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"its own machine",
       control::Moved{3, "127.0.0.1", 8},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"which is this one",
       control::Moved{3, "127.0.0.1", 8},
       {Kind::There, "", 3, {"127.0.0.1", 8}},
       "127.0.0.1"},
      {"an error",
       control::Error{control::ErrorCode::WrongStore, "it serves another job"},
       {Kind::NoAnswer, "it serves another job", 0, {}}},
      {"an older drun",
       control::Welcome{2, 1000, 100, 500, 100},
       {Kind::NoAnswer, "an older version of drun is there", 0, {}}},
      {"something else", control::Done{}, {Kind::NoAnswer, "no drun agent answers there", 0, {}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Fixture f;
    f.fsm.start(f.now);
    f.connect(row.peer);
    f.reply(row.reply);
    EXPECT_EQ(f.fsm.answer(), row.expected);
  }
}

TEST(InquiryFsmTest, WhatIsNoDrunIsLeftAlone) {
  Fixture f;
  f.open();
  f.fsm.on_received("HTTP/1.1 400 Bad Request\r\n", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "no drun agent answers there");
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
}

TEST(InquiryFsmTest, TellsWhatItKnowsAtOnce) {
  Fixture f;
  f.open();
  f.fsm.tell({2, 400, ""}, f.now);
  EXPECT_TRUE(f.sent().empty()) << "one question at a time";
  f.reply(control::Moved{});
  auto questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].generation, 2U);
  EXPECT_EQ(questions[0].host, "10.0.0.9") << "as the other end sees this one";
  EXPECT_EQ(questions[0].port, 400);
  f.reply(control::Moved{2, "10.0.0.9", 400});
  f.fsm.tell({2, 400, ""}, f.now);
  EXPECT_TRUE(f.sent().empty()) << "it has been told";
  f.fsm.tell({3, 400, "10.1.1.1"}, f.now);
  questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].host, "10.1.1.1");
}

TEST(InquiryFsmTest, WhatDoesNotAnswerIsTriedAnew) {
  Fixture f;
  f.fsm.start(f.now);
  const auto first = f.fsm.wanted_connection();
  f.fsm.on_connect_failed("refused", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "refused");
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
  const Time begin = f.now;
  f.due();
  EXPECT_EQ(f.now - begin, 250ms);
  EXPECT_NE(f.fsm.wanted_connection(), first);
  f.due();
  EXPECT_EQ(f.now - begin, 1250ms) << "no connection comes about";
  EXPECT_EQ(f.fsm.answer().cause, "no answer");
  f.connect();
  f.welcome();
  f.reply(control::Moved{});
  EXPECT_EQ(f.fsm.answer().kind, Kind::Waits);
  f.due();
  const auto before = f.fsm.wanted_connection();
  f.due();  // and no answer
  EXPECT_EQ(f.now - begin, 4250ms);
  EXPECT_EQ(f.fsm.answer().cause, "no answer");
  EXPECT_NE(f.fsm.wanted_connection(), before);
  f.connect();
  f.fsm.on_disconnected("it closed the connection", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "it closed the connection");
}

}  // namespace
}  // namespace drun::store
