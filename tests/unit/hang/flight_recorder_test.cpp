#include "hang/flight_recorder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/temporary_directory.hpp"

namespace drun::hang {
namespace {

using std::chrono::milliseconds;

TEST(FlightRecorderTest, IsThereIfItsPipeIsAskedFor) {
  EXPECT_FALSE(flight_recorder_of({}));
  EXPECT_FALSE(flight_recorder_of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE="}));
  EXPECT_EQ(flight_recorder_of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/p"}),
            (FlightRecorder{"/tmp/p", ""}));
  EXPECT_EQ(flight_recorder_of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/p",
                                "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/old",
                                "TORCH_FR_DUMP_TEMP_FILE=/tmp/new"}),
            (FlightRecorder{"/tmp/p", "/tmp/new"}));
  EXPECT_EQ(flight_recorder_of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/p",
                                "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/old"}),
            (FlightRecorder{"/tmp/p", "/tmp/old"}));
}

// What lies there instead of a pipe is somebody's.
TEST(FlightRecorderTest, OnlyAPipeThatIsReadIsWrittenTo) {
  const test::TemporaryDirectory folder;
  const std::string pipe = folder.file("pipe_");
  std::ofstream(pipe + "0.pipe") << "mine";
  std::filesystem::create_symlink(pipe + "0.pipe", pipe + "1.pipe");
  ASSERT_EQ(::mkfifo((pipe + "2.pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((pipe + "3.pipe").c_str(), 0600), 0);
  const FileDescriptor reader(::open((pipe + "3.pipe").c_str(), O_RDONLY | O_NONBLOCK));
  const auto dumps = ask_for_dumps({pipe, ""}, {0, 1, 2, 3, 4}, milliseconds(0));
  EXPECT_EQ(dumps.asked, std::vector<int>{3});
  EXPECT_TRUE(dumps.files.empty());
  std::string left;
  std::ifstream(pipe + "0.pipe") >> left;
  EXPECT_EQ(left, "mine");
}

// One that lay there before says nothing of this hang.
TEST(FlightRecorderTest, ADumpOfEarlierIsNoneOfNow) {
  const test::TemporaryDirectory folder;
  const std::string pipe = folder.file("pipe_");
  std::ofstream(folder.file("trace_0")) << "of yesterday";
  ASSERT_EQ(::mkfifo((pipe + "0.pipe").c_str(), 0600), 0);
  const FileDescriptor reader(::open((pipe + "0.pipe").c_str(), O_RDONLY | O_NONBLOCK));
  const auto dumps = ask_for_dumps({pipe, folder.file("trace_")}, {0}, milliseconds(200));
  EXPECT_EQ(dumps.asked, std::vector<int>{0});
  EXPECT_TRUE(dumps.files.empty());
  EXPECT_EQ(dumps_text(dumps), "the flight recorder of rank 0 was asked for a dump");
}

TEST(FlightRecorderTest, FewFilesAreNamedAndManyCounted) {
  EXPECT_EQ(dumps_text({}), "");
  EXPECT_EQ(dumps_text({{0}, {"/t/0"}}), "the flight recorder has written /t/0");
  EXPECT_EQ(dumps_text({{0, 1, 2}, {"/t/0", "/t/1", "/t/2"}}),
            "the flight recorder has written /t/0, /t/1 and /t/2");
  EXPECT_EQ(dumps_text({{0, 1, 2, 3, 4, 5}, {"/t/0", "/t/1", "/t/2", "/t/3", "/t/4", "/t/5"}}),
            "the flight recorder has written /t/0, /t/1, /t/2, /t/3 and 2 more");
}

}  // namespace
}  // namespace drun::hang
