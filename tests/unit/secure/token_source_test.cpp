#include "secure/token_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::secure {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kText = "0123456789abcdef";

// An environment as a process has it.
class Block {
 public:
  explicit Block(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_)
      pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }

  char** get() { return pointers_.data(); }
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> result;
    for (std::size_t i = 0; pointers_[i] != nullptr; ++i)
      result.emplace_back(pointers_[i]);
    return result;
  }
  // What the kernel shows of it.
  [[nodiscard]] std::string memory() const {
    std::string result;
    for (const std::string& entry : entries_)
      result += entry;
    return result;
  }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

TEST(TokenVariableTest, ItIsTakenOutOfTheEnvironment) {
  Block block({"A=1", std::string("DRUN_TOKEN=") + kText, "DRUN_TOKENS=x", "DRUN_TOKEN", "B="});
  const auto token = take_token(block.get());
  ASSERT_TRUE(token);
  EXPECT_TRUE(token->value().is(kText));
  EXPECT_THAT(block.left(), ElementsAre("A=1", "DRUN_TOKENS=x", "DRUN_TOKEN", "B="));
  EXPECT_THAT(block.memory(), Not(HasSubstr("0123")));
  EXPECT_FALSE(take_token(block.get()));
}

TEST(TokenVariableTest, OneThatDrunHasMadeHasAVariableOfItsOwn) {
  const Token made = Token::made();
  EXPECT_TRUE(made.is_long());
  Block block({made.handed_over(kMadeTokenVariable), std::string("DRUN_TOKEN=") + kText});
  const auto taken = take_token(block.get(), kMadeTokenVariable);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->value().handed_over("A"), made.handed_over("A"));
  EXPECT_NE(Token::made().handed_over("A"), made.handed_over("A"));
  EXPECT_THAT(block.left(), ElementsAre(std::string("DRUN_TOKEN=") + kText));
}

TEST(TokenVariableTest, InPlaceOfAFileThereMayBeNone) {
  EXPECT_FALSE(given_token({}, "none").value());
  EXPECT_TRUE(given_token(Token::from(kText), "none").value()) << "the variable comes first";
}

TEST(TokenVariableTest, OfSeveralTheFirstCountsAndNoneStays) {
  Block block({std::string("DRUN_TOKEN=") + kText, "DRUN_TOKEN=another-secret-text"});
  EXPECT_TRUE(take_token(block.get()).value().value().is(kText));
  EXPECT_THAT(block.left(), IsEmpty());
  EXPECT_THAT(block.memory(), Not(HasSubstr("secret")));
}

TEST(TokenVariableTest, OneThatIsNoneIsTakenOutAsWell) {
  for (const std::string text : {"", "short", "with a blank in the text"}) {
    Block block({"DRUN_TOKEN=" + text});
    const auto token = take_token(block.get());
    ASSERT_TRUE(token);
    ASSERT_FALSE(*token) << text;
    EXPECT_THAT(token->error().what(), ::testing::StartsWith("DRUN_TOKEN: "));
    EXPECT_THAT(block.left(), IsEmpty());
  }
  Block none({});
  EXPECT_FALSE(take_token(none.get()));
}

class TokenFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.file("token");
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string error_of(const std::string& path) {
    const auto token = read_token(path);
    return token ? "none" : token.error().what();
  }

  const test::TemporaryDirectory folder_;
};

TEST_F(TokenFileTest, OneNewlineAtTheEndIsNotPartOfIt) {
  for (const std::string end : {"", "\n"})
    EXPECT_TRUE(read_token(file(kText + end)).value().is(kText));
  EXPECT_TRUE(read_token(file(kText, 0400)).value().is(kText));
  EXPECT_THAT(error_of(file(std::string(kText) + "\n\n")), HasSubstr("control characters"));
  EXPECT_THAT(error_of(file(std::string(kText) + "\r\n")), HasSubstr("control characters"));
}

TEST_F(TokenFileTest, WhatIsInItHasToBeAToken) {
  EXPECT_THAT(error_of(file("")), HasSubstr("/token: it has 0 bytes, and a token has 16 to 4096"));
  EXPECT_THAT(error_of(file("short\n")), HasSubstr("it has 5 bytes"));
  EXPECT_TRUE(read_token(file(std::string(Token::kLongest, 'x') + "\n")));
  EXPECT_THAT(error_of(file(std::string(Token::kLongest + 1, 'x'))), HasSubstr("it has 4097"));
  EXPECT_THAT(error_of(file(std::string(1 << 20, 'x'))), HasSubstr("it has 4098 bytes"));
}

TEST_F(TokenFileTest, TheVariableComesFirstAndNeitherIsNone) {
  const std::string own = file(std::string(kText) + "\n");
  const auto of_file = given_token(std::nullopt, own);
  ASSERT_TRUE(of_file && *of_file);
  EXPECT_TRUE((*of_file)->is(kText));
  const std::string other = "fedcba9876543210";
  const auto of_variable = given_token(Token::from(other), own);
  ASSERT_TRUE(of_variable && *of_variable);
  EXPECT_TRUE((*of_variable)->is(other));
  const auto none = given_token(std::nullopt, "");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_THAT(given_token(std::nullopt, "/nowhere").error().what(),
              HasSubstr("--token-file /nowhere: No such file"));
  EXPECT_THAT(given_token(Token::from("short"), own).error().what(), HasSubstr("it has 5 bytes"))
      << "a wrong one is not passed over";
}

TEST_F(TokenFileTest, OthersMustHaveNoAccess) {
  for (const mode_t mode : {0640U, 0620U, 0610U, 0604U, 0602U, 0601U}) {
    const std::string path = file(kText, mode);
    const std::string octal = {'0', static_cast<char>('0' + (mode >> 6)),
                               static_cast<char>('0' + (mode >> 3 & 7)),
                               static_cast<char>('0' + (mode & 7))};
    EXPECT_EQ(error_of(path), path + ": others may use it (mode " + octal + "): chmod 600 " + path);
  }
}

TEST_F(TokenFileTest, ItIsThisUsersOrRoots) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = file(kText);
  ASSERT_EQ(::chown(path.c_str(), 4711, 0), 0);
  EXPECT_EQ(error_of(path),
            path + ": it belongs to user 4711, who can change it: chown 0 " + path + " (as root)");
}

TEST_F(TokenFileTest, ANameIsShownAsTheShellWantsIt) {
  const std::string path = folder_.file("to ken\x1b");
  std::ofstream(path) << kText;
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(error_of(path), EndsWith("to ken\\x1b'"));
}

TEST_F(TokenFileTest, TheSystemSaysWhyItCannotBeRead) {
  EXPECT_THAT(error_of(folder_.file("none")), EndsWith("/none: No such file or directory"));
  ASSERT_EQ(::mkdir(folder_.file("dir").c_str(), 0700), 0);
  EXPECT_THAT(error_of(folder_.file("dir")), EndsWith("/dir: it is neither a file nor a pipe"));
  EXPECT_EQ(error_of("/dev/null"), "/dev/null: it is neither a file nor a pipe");
  // There is nothing at the address 0.
  EXPECT_EQ(error_of("/proc/self/mem"), "/proc/self/mem: Input/output error");
}

TEST_F(TokenFileTest, APipeWillDoAndOneWithoutAWriterIsGivenUp) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << kText << "\n"; });
  EXPECT_TRUE(read_token(pipe).value().is(kText));
  writer.join();
  const auto nothing = read_token(pipe, std::chrono::milliseconds(50));
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().what(), HasSubstr("no answer for "));
  std::ofstream release(pipe);  // the thread that was left behind ends
}

}  // namespace
}  // namespace drun::secure
