// The completion scripts in the real shells.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Lines = std::vector<std::string>;

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "completion-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : {"train.py", "data.txt"})
      std::ofstream(folder_ / name) << "x";
    std::filesystem::create_directory(folder_ / "logs");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Whether the shell is here; its completion script is then in `script_`.
  bool prepare(const std::string& shell) {
    if (std::system(("command -v " + shell + " > /dev/null 2>&1").c_str()) != 0) return false;
    script_ = folder_ / ("_drun." + shell);
    const Parsed parsed = test::parse({"--print-completion", shell});
    EXPECT_EQ(parsed.exit_code, 0);
    std::ofstream(script_) << parsed.text;
    return true;
  }

  Lines run(const std::string& command) const {
    const std::string whole =
        "cd " + folder_.string() + " && HOME=" + folder_.string() + " " + command + " 2>&1";
    FILE* pipe = ::popen(whole.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer{};
    while (const auto got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      text.append(buffer.data(), got);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << text;
    Lines lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }

  // A file with these lines, to be run by a shell.
  std::string file(const std::string& text) const {
    const auto path = folder_ / "commands";
    std::ofstream(path) << text;
    return path.string();
  }

  std::filesystem::path folder_;
  std::filesystem::path script_;
};

class BashCompletionTest : public CompletionTest {
 protected:
  // What is offered for the last of these words.
  Lines offered(const std::string& words) {
    return run("bash --norc " +
               file("source " + script_.string() + "\ncompopt() { :; }\n" + "COMP_WORDS=(" + words +
                    ")\n" + "COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))\n" +
                    "_drun\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"));
  }
};

TEST_F(BashCompletionTest, FlagsValuesAndProgramsAreOffered) {
  if (!prepare("bash")) GTEST_SKIP() << "bash is not installed";
  EXPECT_THAT(offered("drun --nn"), ElementsAre("--nnodes"));
  EXPECT_THAT(offered("drun --nnodes 2 --stan"), ElementsAre("--standalone"));
  EXPECT_THAT(offered("drun --rdzv-backend ''"), UnorderedElementsAre("c10d", "static"));
  EXPECT_THAT(offered("drun --rdzv_backend s"), ElementsAre("static"));
  EXPECT_THAT(offered("drun --rdzv-backend = c"), ElementsAre("c10d"));
  EXPECT_THAT(offered("drun --rdzv-backend ="), UnorderedElementsAre("c10d", "static"));
  EXPECT_THAT(offered("drun --nnodes 2 tra"), Contains("train.py"));
  EXPECT_THAT(offered("drun --nnodes = 2 tra"), Contains("train.py"));
  EXPECT_THAT(offered("drun --nnodes ''"), IsEmpty());
  EXPECT_THAT(offered("drun train.py --nn"), Not(Contains("--nnodes")));
  EXPECT_THAT(offered("drun -- --nn"), Not(Contains("--nnodes")));
}

class FishCompletionTest : public CompletionTest {
 protected:
  Lines offered(const std::string& line) {
    Lines result = run("fish --no-config " +
                       file("source " + script_.string() + "\ncomplete -C '" + line + "'\n"));
    for (std::string& each : result)
      each = each.substr(0, each.find('\t'));
    return result;
  }
};

TEST_F(FishCompletionTest, FlagsValuesAndProgramsAreOffered) {
  if (!prepare("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(offered("drun --nn"), ElementsAre("--nnodes"));
  EXPECT_THAT(offered("drun --nnodes 2 --stan"), ElementsAre("--standalone"));
  EXPECT_THAT(offered("drun --rdzv-backend "), UnorderedElementsAre("c10d", "static"));
  EXPECT_THAT(offered("drun --rdzv-backend=s"), ElementsAre("--rdzv-backend=static"));
  EXPECT_THAT(offered("drun --nnodes 2 bas"), Contains("bash"));
  EXPECT_THAT(offered("drun --nnodes 2 cat tra"), Contains("train.py"));
  EXPECT_THAT(offered("drun cat --nn"), Not(Contains("--nnodes")));
}

class ZshCompletionTest : public CompletionTest {
 protected:
  // Types the line and a tabulator in a terminal of zsh's own, and reads the line that comes out.
  Lines completed(const std::string& line) {
    return run("timeout 200 zsh -f " +
               file("zmodload zsh/zpty\n"
                    "zpty -b shell zsh -f -i\n"
                    "zpty -w shell \"PS1='' PS2=''; unsetopt zle_bracketed_paste; "
                    "autoload -Uz compinit && compinit -u -D; LISTMAX=1000\"\n"
                    "zpty -w shell 'source " +
                    script_.string() +
                    "'\n"
                    "zpty -w shell 'show() { print -r -- \"<<<$BUFFER>>>\"; }; zle -N "
                    "show; bindkey \"^T\" show; print re\"\"ady'\n"
                    "zpty -r shell seen '*ready*'\n"
                    "zpty -n -w shell '" +
                    line +
                    "'$'\\t\\x14'\n"
                    "zpty -r shell seen '*<<<*>>>*'\n"
                    "print -r -- \"${${seen##*<<<}%%>>>*}\"\n"
                    "zpty -d shell\n"));
  }
};

TEST_F(ZshCompletionTest, FlagsValuesAndProgramsAreOffered) {
  if (!prepare("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(completed("drun --nno"), ElementsAre("drun --nnodes="));
  EXPECT_THAT(completed("drun --nnodes 2 --standa"), ElementsAre("drun --nnodes 2 --standalone "));
  EXPECT_THAT(completed("drun --rdzv-backend s"), ElementsAre("drun --rdzv-backend static "));
  EXPECT_THAT(completed("drun --rdzv-backend=c"), ElementsAre("drun --rdzv-backend=c10d "));
  EXPECT_THAT(completed("drun --nnodes 2 cat trai"), ElementsAre("drun --nnodes 2 cat train.py "));
  EXPECT_THAT(completed("drun cat --nno"), ElementsAre("drun cat --nno"));
}

TEST(CompletionScriptTest, OtherShellsAreRefused) {
  EXPECT_EQ(test::parse({"--print-completion", "tcsh"}).text,
            "drun: error: --print-completion 'tcsh': expected bash, zsh or fish\n");
}

}  // namespace
}  // namespace drun::launcher
