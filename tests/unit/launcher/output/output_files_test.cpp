#include "launcher/output/output_files.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/output/log_layout.hpp"
#include "launcher/output/output_log_file.hpp"

namespace drun::launcher {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST(FittingTest, CutsAtLineEnds) {
  EXPECT_EQ(fitting("aa\nbb\n", 6, false, true), 6U);
  EXPECT_EQ(fitting("aa\nbb\n", 5, false, true), 3U);
  EXPECT_EQ(fitting("aa\nbb\n", 2, false, false), 0U);
  EXPECT_EQ(fitting("aa\nbb\n", 0, false, false), 0U);
  EXPECT_EQ(fitting("aa\nbb\n", 2, true, false), 3U) << "a line is finished where it began";
  EXPECT_EQ(fitting("aaaa\nbb\n", 2, false, true), 5U) << "a line longer than a file";
  EXPECT_EQ(fitting("aaaa", 2, false, true), 4U);
}

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string pattern = testing::TempDir() + "drun_files_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FilesTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

using LogFileTest = FilesTest;

TEST_F(LogFileTest, KeepsEveryByteAtOnce) {
  LogFile log(path("x.log"), 0);
  log.write("one\n");
  EXPECT_EQ(read(path("x.log")), "one\n");
  log.write("par");
  log.write("t\n");
  EXPECT_EQ(read(path("x.log")), "one\npart\n");
  EXPECT_EQ(log.error(), 0);
}

TEST_F(LogFileTest, StartsANewFileAtTheLimit) {
  LogFile log(path("x.log"), 100);
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string line = "line number " + std::to_string(100 + i) + "\n";  // 16 bytes
    all += line;
    log.write(line.substr(0, 5));
    log.write(line.substr(5));
  }
  std::string kept;
  for (int i = kOldLogs; i >= 1; --i)
    kept += read(path("x.log." + std::to_string(i)));
  kept += read(path("x.log"));
  EXPECT_EQ(kept, all.substr(all.size() - kept.size()));
  EXPECT_GE(kept.size(), 4U * 96U);
  EXPECT_FALSE(fs::exists(path("x.log." + std::to_string(kOldLogs + 1))));
  for (int i = kOldLogs; i >= 1; --i) {
    const std::string text = read(path("x.log." + std::to_string(i)));
    EXPECT_LE(text.size(), 110U);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_THAT(text, testing::StartsWith("line"));
  }
}

TEST_F(LogFileTest, NamesThePathThatCannotBe) {
  try {
    LogFile log(path("no/x.log"), 0);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path("no/x.log")));
  }
}

TEST_F(LogFileTest, AFullDiskIsRememberedNotFatal) {
  LogFile log("/dev/full", 0);
  log.write("x\n");
  EXPECT_EQ(log.error(), ENOSPC);
  log.write("y\n");
}

TEST_F(LogFileTest, AFilterKeepsLinesThatContainAText) {
  FilterFile filter(path("filtered.log"), {"loss", "NaN"});
  filter.lines("[r0]:", "loss 3\n");
  filter.lines("[r1]:", "nothing\nlos\ns\n\n");
  filter.lines("[r1]:", "x\na NaN\nloss and loss, NaN\ny\nNa");
  filter.lines("[r2]:", "no end: NaN");
  filter.lines("[r2]:", "");
  EXPECT_EQ(read(path("filtered.log")),
            "[r0]:loss 3\n[r1]:a NaN\n[r1]:loss and loss, NaN\n[r2]:no end: NaN\n");
}

TEST_F(LogFileTest, AFilterMatchesWithinALineOnly) {
  FilterFile filter(path("filtered.log"), {"a\nb", "c\n", ""});
  filter.lines("", "a\nb\nc\nc");
  EXPECT_EQ(read(path("filtered.log")), "a\nb\nc\nc\n") << "every line has the empty text";
  FilterFile without(path("without.log"), {"a\nb", "c\n"});
  without.lines("", "a\nb\nc\na\nb\nc");
  EXPECT_EQ(read(path("without.log")), "c\n");
}

TEST_F(LogFileTest, AFilterKeepsMoreThanItHoldsBack) {
  FilterFile filter(path("filtered.log"), {"x"});
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += std::string(1023, 'x') + "\n";
  filter.lines("", lines);
  EXPECT_EQ(read(path("filtered.log")), lines);
}

using RunFilesTest = FilesTest;

TEST_F(RunFilesTest, HasTorchrunsLayout) {
  RunFiles files(path("logs/here/"), "job/7", {folder_});
  EXPECT_TRUE(files.keeps_logs());
  EXPECT_FALSE(fs::exists(path("logs")));
  const std::string rank = files.rank_folder(0, 0, 3);
  EXPECT_THAT(rank, MatchesRegex(path("logs/here/job_7_[a-z0-9]{8}/attempt_0/3")));
  EXPECT_TRUE(fs::is_directory(rank));
  EXPECT_EQ(files.error_file(0, 0, 3), rank + "/error.json");
  EXPECT_EQ(files.run_folder() + "/attempt_0", files.attempt_folder(0, 0));
  EXPECT_EQ(fs::canonical(path("logs/here/latest")), fs::canonical(files.run_folder()));
}

// A relative path has no beginning then.
TEST_F(RunFilesTest, AWorkingDirectoryThatIsGoneIsNamed) {
  const fs::path before = fs::current_path();
  fs::create_directory(path("gone"));
  fs::current_path(path("gone"));
  fs::remove(path("gone"));
  std::string said;
  try {
    const RunFiles files("logs", "job", {folder_});
  } catch (const std::system_error& error) {
    said = error.what();
  }
  fs::current_path(before);
  EXPECT_THAT(said, HasSubstr("--log-dir: the current folder does not exist any more"));
}

TEST_F(RunFilesTest, APrivateFolderIsWhereOneCanBeMade) {
  std::string folder;
  {
    RunFiles files("", "job", {path("missing"), folder_, path("other")});
    EXPECT_THAT(files.error_file(0, 0, 0), MatchesRegex(path("drun_[a-z0-9]{8}/0_0_error.json")));
    folder = files.private_folder();
    EXPECT_TRUE(fs::is_directory(folder));
  }
  EXPECT_FALSE(fs::exists(folder));
  RunFiles none("", "job", {path("missing"), path("gone")});
  try {
    (void)none.error_file(0, 0, 0);
    FAIL() << "made somewhere";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(path("missing") + ", " + path("gone")),
                                    HasSubstr("No such file or directory")));
  }
}

TEST_F(RunFilesTest, OnceThePrivateFolderIsRemovedNobodyElseNeedsToTry) {
  OutputFiles files(OutputChoices{}, "job", {folder_});
  const std::string folder = files.open(StreamLabel{}).private_folder;
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(files.remove_private_folder());
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(RunFilesTest, ALaterRunIsTheLatest) {
  const std::string first = RunFiles(folder_, "job", {folder_}).run_folder();
  RunFiles second(folder_, "job", {folder_});
  EXPECT_NE(first, second.run_folder());
  EXPECT_EQ(fs::read_symlink(path("latest")).string(),
            second.run_folder().substr(folder_.size() + 1));
}

TEST_F(RunFilesTest, NoRoundWritesOverAnother) {
  RunFiles files(folder_, "job", {folder_});
  const std::string run = files.run_folder();
  EXPECT_EQ(files.attempt_folder(1, 0), run + "/attempt_0");
  EXPECT_EQ(files.attempt_folder(2, 0), run + "/attempt_0.1");  // a node joined
  EXPECT_EQ(files.attempt_folder(3, 1), run + "/attempt_1");
  EXPECT_EQ(files.attempt_folder(4, 1), run + "/attempt_1.1");
  EXPECT_EQ(files.attempt_folder(5, 1), run + "/attempt_1.2");
  EXPECT_EQ(files.attempt_folder(2, 0), run + "/attempt_0.1");
}

TEST_F(RunFilesTest, WithoutALogFolderNothingIsLeft) {
  std::string error_file;
  {
    RunFiles files("", "job", {folder_});
    EXPECT_FALSE(files.keeps_logs());
    EXPECT_EQ(files.private_folder(), "");
    error_file = files.error_file(2, 1, 3);
    EXPECT_NE(error_file, files.error_file(2, 1, 4));
    EXPECT_NE(error_file, files.error_file(3, 1, 3));
    EXPECT_THAT(error_file, testing::StartsWith(files.private_folder()));
    struct stat status {};
    ASSERT_EQ(::stat(files.private_folder().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    std::ofstream(error_file) << "x";
    EXPECT_TRUE(fs::exists(error_file));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RunFilesTest, DevNullMeansNoFilesAtAll) {
  RunFiles files("/dev/null", "job", {folder_});
  EXPECT_FALSE(files.keeps_logs());
  EXPECT_EQ(files.error_file(0, 0, 0), "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RunFilesTest, AFolderThatCannotBeIsNamed) {
  std::ofstream(path("file")) << "x";
  for (const std::string& bad : {path("file"), path("file/logs")}) {
    RunFiles files(bad, "job", {folder_});
    try {
      (void)files.run_folder();
      FAIL() << bad;
    } catch (const std::system_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad));
      EXPECT_EQ(error.code().value(), ENOTDIR);
    }
  }
}

TEST_F(RunFilesTest, ARelativeFolderStaysTheSameForAWorkerElsewhere) {
  RunFiles files("some/logs", "job", {folder_});
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  RunFiles here("logs", "job", {folder_});
  EXPECT_THAT(here.run_folder(), testing::StartsWith("/"));
  fs::current_path(before);
}

TEST_F(RunFilesTest, ARunIdIsAFileName) {
  EXPECT_EQ(file_name_of("job-7_a.b+c@d:e=f"), "job-7_a.b+c@d:e=f");
  EXPECT_EQ(file_name_of("../a b/c\n"), "_._a_b_c_");
  EXPECT_EQ(file_name_of(""), "");
  EXPECT_EQ(file_name_of(std::string(1000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace drun::launcher
