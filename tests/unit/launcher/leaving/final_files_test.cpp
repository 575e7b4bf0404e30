#include "launcher/leaving/final_files.hpp"

#include <cerrno>
#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FinalFilesTest : public testing::Test {
 protected:
  [[nodiscard]] std::function<void(const std::string&)> failed(const std::string& what) {
    return [this, what](const std::string& why) { said_.push_back(what + ": " + why); };
  }
  void await_end() {
    files_.when_over([this] { said_.emplace_back("over"); });
  }
  // All that is left to do.
  void run() { io_.run_for(drun::test::kPatience); }

  asio::io_context io_{1};
  FinalFiles files_{io_};
  std::vector<std::string> said_;
};

TEST_F(FinalFilesTest, WithoutFilesItIsOverAtOnce) {
  files_.write(nullptr, failed("none"));
  await_end();
  EXPECT_THAT(said_, ElementsAre("over"));
}

TEST_F(FinalFilesTest, EachIsWrittenOrSaysWhyNot) {
  files_.write([]() -> Status { return Done{}; }, failed("good"));
  files_.write([]() -> Status { return Error::from_errno(EACCES, "write /x"); }, failed("bad"));
  files_.write([]() -> Status { throw std::system_error(ENOSPC, std::generic_category(), "/y"); },
               failed("worse"));
  await_end();
  EXPECT_THAT(said_, IsEmpty());
  run();
  EXPECT_THAT(said_, UnorderedElementsAre("bad: write /x: Permission denied",
                                          "worse: /y: No space left on device", "over"));
  EXPECT_EQ(said_.back(), "over");
}

TEST_F(FinalFilesTest, OneThatHangsDelaysNoOtherAndCanBeGivenUp) {
  std::promise<void> answer;
  std::promise<void> written;
  files_.write(
      [answered = answer.get_future().share()]() -> Status {
        answered.wait();
        return Done{};
      },
      failed("hung"));
  files_.write(
      [&written]() -> Status {
        written.set_value();
        return Done{};
      },
      failed("good"));
  await_end();
  written.get_future().wait();
  EXPECT_THAT(said_, IsEmpty());
  files_.give_up("received SIGINT");
  EXPECT_EQ(said_.front(), "hung: given up: received SIGINT");
  EXPECT_EQ(said_.back(), "over");
  const auto heard = said_;
  files_.give_up("received SIGINT");
  run();
  EXPECT_TRUE(io_.stopped()) << "nothing is waited for";
  answer.set_value();
  EXPECT_EQ(said_, heard);
}

}  // namespace
}  // namespace drun::launcher
