#include "launcher/leaving/report_file.hpp"

#include <sys/stat.h>

#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using testing::HasSubstr;

class ReportFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // All that is left to do.
  void run() { io_.run_for(drun::test::kPatience); }

  const drun::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("report.json");
  asio::io_context io_{1};
  std::string failed_;
};

TEST_F(ReportFileTest, SaysThatTheJobRunsThenHowItEnded) {
  ReportFile file(io_, path_);
  file.begin([this](const std::string& why) { failed_ = why; });
  run();
  EXPECT_THAT(content(), HasSubstr("running"));
  EXPECT_TRUE(file.end({}, {}, true)());
  EXPECT_THAT(content(), HasSubstr("success"));
  EXPECT_EQ(failed_, "");
}

TEST_F(ReportFileTest, TheEndIsNotReplacedByTheBeginning) {
  for (int round = 0; round < 50; ++round) {
    asio::io_context io{1};
    ReportFile file(io, path_);
    file.begin([](const std::string&) {});
    std::thread end([write = file.end({}, {}, true)] { EXPECT_TRUE(write()); });
    io.run_for(drun::test::kPatience);
    end.join();
    ASSERT_THAT(content(), HasSubstr("success"));
  }
}

TEST_F(ReportFileTest, WhatCannotBeWrittenIsNotTriedAgain) {
  ReportFile file(io_, folder_.file("gone/report.json"));
  file.begin([this](const std::string& why) { failed_ = why; });
  run();
  EXPECT_THAT(failed_, HasSubstr("gone/report.json: No such file or directory"));
  EXPECT_FALSE(file.end({}, {}, true));
}

TEST_F(ReportFileTest, WithoutAFileNothingIsDone) {
  ReportFile file(io_, "");
  file.begin([this](const std::string& why) { failed_ = why; });
  EXPECT_EQ(io_.run(), 0U);
  EXPECT_FALSE(file.end({}, {}, true));
  file.cancel();
}

TEST_F(ReportFileTest, NobodyIsCalledAnyMore) {
  ReportFile file(io_, folder_.file("gone/report.json"));
  file.begin([this](const std::string& why) { failed_ = why; });
  file.cancel();
  run();
  EXPECT_EQ(failed_, "");
}

}  // namespace
}  // namespace drun::launcher
