// Log files, prefixes, filters and folding, through the real thread.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/output_rig.hpp"

namespace drun::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using launcher::WorkerStreams;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class OutputModesTest : public testing::Test, public OutputRig {
 protected:
  OutputModesTest() {
    std::string pattern = testing::TempDir() + "drun_output_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    options.temporary = {folder_};
  }
  ~OutputModesTest() override {
    output.reset();
    fs::remove_all(folder_);
  }
  void keep_logs() { options.choices.log_dir = folder_ + "/logs"; }
  std::string in_attempt(const std::string& name) const {
    return folder_ + "/logs/latest/attempt_0/" + name;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  }

  std::string folder_;
};

TEST_F(OutputModesTest, ARedirectedStreamIsTheFileItself) {
  keep_logs();
  options.choices.redirects.all = 3;
  start();
  WorkerStreams worker = open(0);
  struct stat mine {};
  struct stat file {};
  ASSERT_EQ(::fstat(worker.standard_error.get(), &mine), 0);
  ASSERT_EQ(::stat(in_attempt("0/stderr.log").c_str(), &file), 0);
  EXPECT_EQ(mine.st_ino, file.st_ino);
  write_all(worker.standard_error.get(), "first\nlast words");
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre("first", "last words"));
  EXPECT_THAT(output->log_file(0), testing::EndsWith("/attempt_0/0/stderr.log"));
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_EQ(finish(), "");
}

TEST_F(OutputModesTest, TeeShowsAPrefixAndKeepsTheBytes) {
  using namespace std::string_view_literals;
  keep_logs();
  options.choices.tee.all = 3;
  start();
  WorkerStreams worker = open(2);
  write_all(worker.standard_output.get(), "one\n\ntwo\r\nnul\0\xff\n"sv);
  EXPECT_TRUE(shows("[default2]:one\n[default2]:\n[default2]:two\r\n[default2]:nul\0\xff\n"sv));
  EXPECT_EQ(read(in_attempt("2/stdout.log")), "one\n\ntwo\r\nnul\0\xff\n"sv);
  write_all(worker.standard_error.get(), "oops\n");
  std::string errors;
  EXPECT_TRUE(read_until(err.read.get(), errors, [&] { return errors == "[default2]:oops\n"; }));
  EXPECT_THAT(output->tail(2, kPatience), ElementsAre("oops"));
}

TEST_F(OutputModesTest, APrefixedLineInPiecesHasOnePrefix) {
  options.choices.tee.all = 1;
  options.choices.prefix_template = "${hostname}/${rank} ";
  options.host = "node1.example";
  start();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "loading");
  EXPECT_TRUE(shows("node1/0 loading"));
  write_all(worker.standard_output.get(), " ... ");
  EXPECT_TRUE(shows("node1/0 loading ... "));
  write_all(worker.standard_output.get(), "done\nnext\n");
  EXPECT_TRUE(shows("node1/0 loading ... done\nnode1/0 next\n"));
}

TEST_F(OutputModesTest, APrefixedLineThatWasCutGoesOnWithAPrefix) {
  options.choices.tee.all = 1;
  start();
  WorkerStreams first = open(0);
  WorkerStreams second = open(1);
  write_all(first.standard_output.get(), "loading");
  EXPECT_TRUE(shows("[default0]:loading"));
  write_all(second.standard_output.get(), "impatient\n");
  EXPECT_TRUE(shows("[default0]:loading\n[default1]:impatient\n"));
  write_all(first.standard_output.get(), " done\n");
  EXPECT_TRUE(shows("[default0]:loading\n[default1]:impatient\n[default0]: done\n"));
}

// The same bytes in the file, and the same lines on the console, wherever the pieces end.
TEST_F(OutputModesTest, PiecesChangeNothing) {
  keep_logs();
  options.choices.tee.all = 1;
  start();
  std::string text;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const auto returns = static_cast<std::size_t>(i * 7 % 90);
    const std::string begin = std::to_string(i) + std::string(returns, '\r');
    text += begin + "x\n";
    expected += "[default0]:" + begin + (returns > 0 ? "[default0]:x\n" : "x\n");
  }
  std::thread writer([worker = open(0), &text] {
    std::size_t at = 0;
    for (std::size_t step = 1; at < text.size(); step = (step * 31 + 7) % 977 + 1) {
      write_all(worker.standard_output.get(), std::string_view(text).substr(at, step));
      at += step;
    }
  });
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.size() >= expected.size(); }));
  writer.join();
  EXPECT_TRUE(shown == expected);
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_TRUE(read(in_attempt("0/stdout.log")) == text);
}

TEST_F(OutputModesTest, TeeWithoutALogFolderLeavesNothingBehind) {
  options.choices.tee.all = 3;
  options.choices.redirects.by_local_rank[1] = 3;
  start();
  write_all(open(0).standard_output.get(), "x\n");
  EXPECT_TRUE(shows("[default0]:x\n"));
  launcher::StreamLabel label;
  const auto files = output->files()->open(label);
  EXPECT_FALSE(files.error_file.empty());
  EXPECT_FALSE(files.private_folder.empty());
  EXPECT_TRUE(output->drain(kPatience));
  finish();
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(OutputModesTest, RanksThatAreFilteredOutAreOnlyInTheirFiles) {
  keep_logs();
  options.choices.tee.all = 1;
  options.choices.local_ranks_filter = std::vector<int>{1};
  start();
  WorkerStreams hidden = open(0);
  WorkerStreams visible = open(1);
  write_all(hidden.standard_output.get(), "hidden\n");
  write_all(hidden.standard_error.get(), "reason\n");
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre("reason"));
  write_all(visible.standard_output.get(), "visible\n");
  EXPECT_TRUE(shows("[default1]:visible\n"));
  hidden = {};
  visible = {};
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_EQ(finish(), "[default1]:visible\n");
  EXPECT_EQ(read(in_attempt("0/stdout.log")), "hidden\n");
}

TEST_F(OutputModesTest, FiltersCollectLinesOfAllRanks) {
  keep_logs();
  options.choices.tee.all = 1;
  options.choices.local_ranks_filter = std::vector<int>{0};
  options.choices.duplicate_stdout_filters = {"loss", "acc"};
  start();
  WorkerStreams first = open(0);
  WorkerStreams second = open(1);
  write_all(first.standard_output.get(), "lo");
  EXPECT_TRUE(shows("[default0]:lo"));  // shown unfinished, still one line for the filter
  write_all(first.standard_output.get(), "ss 3\nacc 1\nother\n");
  EXPECT_TRUE(shows("[default0]:loss 3\n[default0]:acc 1\n[default0]:other\n"));
  write_all(second.standard_output.get(), "nothing\nacc");
  first = {};
  second = {};
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_THAT(lines_of(read(in_attempt("filtered_stdout.log"))),
              ElementsAre("[default0]:loss 3", "[default0]:acc 1", "[default1]:acc"));
  EXPECT_FALSE(fs::exists(in_attempt("filtered_stderr.log")));
}

TEST_F(OutputModesTest, TimestampsComeBeforeEachLine) {
  options.choices.timestamps = true;
  options.choices.tee.by_local_rank[1] = 1;
  start();
  WorkerStreams plain = open(0);
  write_all(plain.standard_output.get(), "one\ntwo\n");
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.ends_with("two\n"); }));
  const std::string time = "[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} ";
  EXPECT_TRUE(std::regex_match(shown, std::regex(time + "one\n" + time + "two\n"))) << shown;
  shown.clear();
  WorkerStreams tee = open(1);
  write_all(tee.standard_output.get(), "three\n");
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.ends_with("three\n"); }));
  EXPECT_TRUE(std::regex_match(shown, std::regex(time + "\\[default1\\]:three\n"))) << shown;
  output->message("drun: first\nsecond");
  std::string own;
  EXPECT_TRUE(read_until(err.read.get(), own, [&] { return own.ends_with("second\n"); }));
  EXPECT_TRUE(std::regex_match(own, std::regex(time + "drun: first\n" + time + "second\n"))) << own;
}

TEST_F(OutputModesTest, FoldedLinesAreShownOnce) {
  options.choices.fold = true;
  options.fold_window = kPatience;  // a line that all have printed does not wait for its end
  start();
  std::vector<WorkerStreams> workers;
  for (int rank = 0; rank < 4; ++rank)
    workers.push_back(open(rank));
  for (auto& worker : workers)
    write_all(worker.standard_output.get(), "same for all\n");
  EXPECT_TRUE(shows("[ranks 0-3] same for all\n")) << shown;
}

TEST_F(OutputModesTest, ALineOfOneRankIsNotHeldBackForTheOthers) {
  options.choices.fold = true;
  start();
  std::vector<WorkerStreams> workers;
  for (int rank = 0; rank < 4; ++rank)
    workers.push_back(open(rank));
  write_all(workers[2].standard_output.get(), "only here\n");
  EXPECT_TRUE(shows("[rank 2] only here\n"));
  shown.clear();
  write_all(workers[1].standard_output.get(), "waiting");  // shown although it has no end
  EXPECT_TRUE(shows("[rank 1] waiting"));
  write_all(workers[1].standard_output.get(), " over\n");
  EXPECT_TRUE(shows("[rank 1] waiting over\n"));
}

TEST_F(OutputModesTest, LastLinesWithoutAnEndAreFoldedToo) {
  // After a second an unfinished line is shown by itself. An attempt that took as long says
  // nothing: the machine may have been too slow. Ten of them say that drun was.
  for (int attempt = 0; attempt < 10; ++attempt) {
    OutputRig rig;
    rig.options.choices.fold = true;
    rig.options.fold_window = kPatience;
    rig.options.temporary = {folder_};
    rig.start();
    std::vector<WorkerStreams> workers;
    for (int rank = 0; rank < 4; ++rank)
      workers.push_back(rig.open(rank));
    const auto begin = std::chrono::steady_clock::now();
    for (auto& worker : workers)
      write_all(worker.standard_output.get(), "bye");
    workers.clear();
    ASSERT_TRUE(rig.output->drain(kPatience));
    if (std::chrono::steady_clock::now() - begin >= 1s) continue;
    EXPECT_EQ(rig.finish(), "[ranks 0-3] bye\n");
    return;
  }
  FAIL() << "the lines waited for a second each time";
}

TEST_F(OutputModesTest, FoldingAFloodLosesNothing) {
  options.choices.fold = true;
  start();
  constexpr int kLines = 20'000;
  std::vector<std::thread> writers;
  for (int rank = 0; rank < 3; ++rank) {
    writers.emplace_back([worker = open(rank)] {
      // Whole lines in each write that a pipe takes in one piece: a part of a line that has to wait
      // for the rest is shown without it.
      for (int i = 0; i < kLines;) {
        std::string text;
        for (; i < kLines && text.size() < PIPE_BUF - 100; ++i)
          text += "line " + std::to_string(i) + "\n";
        write_all(worker.standard_output.get(), text);
      }
    });
  }
  std::thread reader([&] {
    read_until(
        out.read.get(), shown, [&] { return false; }, 4min);
  });
  for (auto& writer : writers)
    writer.join();
  EXPECT_TRUE(output->drain(kPatience));
  output.reset();
  out.write.reset();
  reader.join();
  std::size_t count = 0;
  const std::regex form(R"(\[ranks? ([0-9,-]+)\] line \d+)");
  for (const auto& line : lines_of(shown)) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, form)) << line;
    const std::string ranks = match[1];
    count += ranks == "0-2" ? 3U : ranks.size() == 1 ? 1U : 2U;
  }
  EXPECT_EQ(count, 3U * kLines);
}

// It is too long to be kept: who shows its beginning goes on with it. Another may cut in after a
// while, on a line of its own.
TEST_F(OutputModesTest, ALineTooLongToFoldIsItsRanksOwn) {
  options.choices.fold = true;
  start();
  constexpr std::size_t kLength = 3'000'000;
  std::vector<std::thread> writers;
  for (int rank = 0; rank < 2; ++rank)
    writers.emplace_back([worker = open(rank), rank] {
      const auto letter = static_cast<char>('a' + rank);
      write_all(worker.standard_output.get(),
                "before\n" + std::string(kLength, letter) + "\nafter\n");
    });
  std::thread reader([&] {
    read_until(
        out.read.get(), shown, [&] { return false; }, 4min);
  });
  for (auto& writer : writers)
    writer.join();
  EXPECT_TRUE(output->drain(kPatience));
  output.reset();
  out.write.reset();
  reader.join();
  std::array<std::size_t, 2> length{};
  for (const auto& line : lines_of(shown)) {
    const std::string start = line.substr(0, 20);
    ASSERT_TRUE(start.starts_with("[rank")) << start;
    const auto text = line.substr(line.find("] ") + 2);
    if (text == "before" || text == "after") continue;
    const bool second = line.starts_with("[rank 1] ");
    ASSERT_TRUE(second || line.starts_with("[rank 0] ")) << start;
    ASSERT_EQ(text.find_first_not_of(second ? 'b' : 'a'), std::string::npos) << start;
    length[second ? 1 : 0] += text.size();
  }
  EXPECT_THAT(length, ElementsAre(kLength, kLength));
}

TEST_F(OutputModesTest, ALimitedLogIsCutIntoFiles) {
  keep_logs();
  options.choices.redirects.all = 1;
  options.choices.log_max_size = 10'000;
  start();
  WorkerStreams worker = open(0);
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "line " + std::to_string(i) + "\n";
  write_all(worker.standard_output.get(), text);
  worker = {};
  EXPECT_TRUE(output->drain(kPatience));
  std::string kept;
  for (const char* end : {".4", ".3", ".2", ".1", ""}) {
    const std::string piece = read(in_attempt("0/stdout.log") + end);
    EXPECT_LE(piece.size(), 10'000U);
    kept += piece;
  }
  EXPECT_EQ(kept, text);
  EXPECT_EQ(finish(), "");
}

TEST_F(OutputModesTest, AFullLogIsSaidOnceAndTheConsoleGoesOn) {
  keep_logs();
  options.choices.tee.all = 1;
  start();
  for (const int rank : {0, 1}) {
    launcher::StreamLabel label;
    label.local_rank = rank;
    const auto folder = fs::path(output->files()->open(label).error_file).parent_path();
    fs::remove(folder / "stdout.log");
    fs::create_symlink("/dev/full", folder / "stdout.log");
  }
  WorkerStreams worker = open(0);
  WorkerStreams other = open(1);
  EXPECT_EQ(output->lost_logs(), "");
  for (int i = 0; i < 3; ++i)
    write_all(worker.standard_output.get(), "x\n");
  EXPECT_TRUE(shows("[default0]:x\n[default0]:x\n[default0]:x\n"));
  write_all(other.standard_output.get(), "y\n");
  worker = {};
  other = {};
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_THAT(output->lost_logs(),
              MatchesRegex("2 log files are not complete: cannot write .*/0/stdout.log: No space "
                           "left on device"));
  output.reset();
  err.write.reset();
  std::string errors;
  read_until(err.read.get(), errors, [] { return false; });
  EXPECT_THAT(
      lines_of(errors),
      ElementsAre(MatchesRegex("drun: cannot write .*/stdout.log: No space left on device; .*")));
}

TEST_F(OutputModesTest, ALogFolderThatCannotBeIsAnErrorWithItsName) {
  std::ofstream(folder_ + "/logs") << "a file";
  keep_logs();
  options.choices.tee.all = 1;
  start();
  try {
    (void)open(0);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_ + "/logs"));
  }
}

}  // namespace
}  // namespace drun::test
