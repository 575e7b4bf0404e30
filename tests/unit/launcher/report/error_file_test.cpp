#include "launcher/report/error_file.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ErrorFileTest, ReadsWhatTorchWrites) {
  const auto error = parse_error_file(
      R"({"message": {"message": "ValueError: bad value 42\nsecond line", "extraInfo":
          {"py_callstack": "Traceback (most recent call last):\n  ...\nValueError: bad value 42\nsecond line\n",
           "timestamp": "1795191822"}}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "ValueError: bad value 42\nsecond line");
  EXPECT_THAT(error->traceback, StartsWith("Traceback"));
  EXPECT_EQ(error->time_ms, 1795191822000);
  EXPECT_EQ(error->text(), error->traceback);
}

TEST(ErrorFileTest, ReadsThePlainForm) {
  const auto error = parse_error_file(R"({"message": "disk full", "timestamp": 1700000000.5})");
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, (WorkerError{"disk full", "", 1700000000500}));
  EXPECT_EQ(error->text(), "disk full");
}

TEST(ErrorFileTest, AddsTheMessageToATracebackWithoutIt) {
  EXPECT_EQ((WorkerError{"boom", "at main\n", {}}.text()), "at main\nboom");
  EXPECT_EQ((WorkerError{"boom", "at main", {}}.text()), "at main\nboom");
}

TEST(ErrorFileTest, ATracebackAloneIsEnough) {
  const auto error =
      parse_error_file(R"({"message": {"message": "", "extraInfo": {"py_callstack": "at main"}}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->traceback, "at main");
  EXPECT_EQ(error->text(), "at main");
}

TEST(ErrorFileTest, ATimestampThatIsNoneIsLeftOut) {
  for (const char* time :
       {"\"soon\"", "\"\"", "-1", "0", "1e300", "null", "[]", "true", "\"12x\""}) {
    const auto error =
        parse_error_file(std::string(R"({"message": "x", "timestamp": )") + time + "}");
    ASSERT_TRUE(error) << time;
    EXPECT_FALSE(error->time_ms) << time;
    EXPECT_EQ(error->message, "x");
  }
}

TEST(ErrorFileTest, QuotesWhatItDoesNotUnderstand) {
  struct Case {
    const char* bytes;
    const char* message;
  };
  const Case cases[] = {
      {"garbage", "error file that is not JSON: garbage"},
      {"{\"message\": \n", "error file that is not JSON: {\"message\":"},
      {"[1, 2]", "error file that is not a JSON object: [1, 2]"},
      {"17", "error file that is not a JSON object: 17"},
      {"{}", "error file without a message: {}"},
      {"{\"message\": null}", "error file without a message: {\"message\": null}"},
      {"{\"message\": {}}", "error file without a message: {\"message\": {}}"},
      {"{\"message\": {\"message\": 3}}",
       "error file without a message: {\"message\": {\"message\": 3}}"},
      {"two\nlines \x1b[31m\xff", "error file that is not JSON: two lines \\xff"},
  };
  for (const Case& c : cases) {
    const auto error = parse_error_file(c.bytes);
    ASSERT_TRUE(error) << c.bytes;
    EXPECT_EQ(error->message, c.message);
  }
}

TEST(ErrorFileTest, QuotesOnlyTheBeginningOfMuch) {
  const auto error = parse_error_file(std::string(1'000'000, 'x'));
  ASSERT_TRUE(error);
  EXPECT_LT(error->message.size(), 400U);
  EXPECT_THAT(error->message, HasSubstr("..."));
}

TEST(ErrorFileTest, DeepNestingIsNoDanger) {
  EXPECT_TRUE(parse_error_file(std::string(100'000, '[')));
}

TEST(ErrorFileTest, NothingIsNothing) {
  EXPECT_FALSE(parse_error_file(""));
  EXPECT_FALSE(parse_error_file(" \n"));
}

class ErrorFileOnDiskTest : public testing::Test {
 protected:
  ErrorFileOnDiskTest() {
    std::string pattern = testing::TempDir() + "drun_error_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ErrorFileOnDiskTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

TEST_F(ErrorFileOnDiskTest, ReadsAFile) {
  std::ofstream(path("e")) << R"({"message": "boom"})";
  const auto error = read_error_file(path("e"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "boom");
}

TEST_F(ErrorFileOnDiskTest, NeverWaitsForAnOddFile) {
  EXPECT_FALSE(read_error_file(path("absent")));
  EXPECT_FALSE(read_error_file(folder_));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_error_file(path("fifo")));
  EXPECT_FALSE(read_error_file("/dev/zero"));
  std::ofstream(path("empty")) << "";
  EXPECT_FALSE(read_error_file(path("empty")));
}

TEST_F(ErrorFileOnDiskTest, PassesTheFileOnWithTheExitCode) {
  std::ofstream(path("e")) << R"({"message": {"message": "boom"}})";
  std::ofstream(path("to")) << "old";
  EXPECT_TRUE(copy_error_file(path("e"), path("to"), 7));
  EXPECT_EQ(read(path("to")), R"({"message":{"errorCode":7,"message":"boom"}})");
  std::ofstream(path("e")) << R"({"message": "boom"})";
  EXPECT_TRUE(copy_error_file(path("e"), path("to"), 7));
  EXPECT_EQ(read(path("to")), R"({"message": "boom"})") << "there is no place for it";
  std::ofstream(path("e")) << "garbage";
  EXPECT_TRUE(copy_error_file(path("e"), path("to"), 7));
  EXPECT_EQ(read(path("to")), "garbage");
  EXPECT_FALSE(copy_error_file(path("absent"), path("to"), 7));
  const auto status = copy_error_file(path("e"), path("no/such/folder"), 7);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr(path("no/such/folder")));
}

}  // namespace
}  // namespace drun::launcher
