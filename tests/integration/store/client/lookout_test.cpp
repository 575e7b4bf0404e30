// What is heard of a server that is asked again and again.
#include "store/client/lookout.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Whereabouts::Kind;

TEST(LookoutTest, EachAnswerIsToldOnceThoughTheQuestionIsRepeated) {
  const Endpoint elsewhere{"127.0.0.1", 7};
  ServerOptions options;
  options.successor = true;
  options.job = "drun/a/";
  std::optional<test::RunningServer> server(std::in_place, options);
  asio::io_context io(1);
  std::vector<Whereabouts> answers;
  InquiryFsm::Options often;
  often.job = "drun/a/";
  often.period = often.retry = std::chrono::milliseconds(1);
  often.patience = often.connecting = test::kPatience;
  Lookout lookout(io, {server->endpoint()}, often,
                  [&](std::size_t, const Whereabouts& answer) { answers.push_back(answer); });
  const auto hears = [&](Kind kind) {
    const auto end = Clock::now() + test::kPatience;
    while ((answers.empty() || answers.back().kind != kind) && Clock::now() < end)
      io.run_one_until(end);
    return !answers.empty() && answers.back().kind == kind;
  };
  ASSERT_TRUE(hears(Kind::Sought));
  // Many questions later:
  for (int i = 0; i < 30; ++i)
    io.run_one_for(test::kPatience);
  ASSERT_TRUE(server->server().point_to(2, elsewhere));
  ASSERT_TRUE(hears(Kind::There));
  EXPECT_EQ(answers.back().place, elsewhere);
  server.reset();
  ASSERT_TRUE(hears(Kind::NoAnswer));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].kind, Kind::Sought);
  EXPECT_EQ(answers[1].kind, Kind::There);
}

}  // namespace
}  // namespace drun::store
