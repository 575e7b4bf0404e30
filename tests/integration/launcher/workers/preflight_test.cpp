// What is looked at before a program starts, with the rights of an ordinary user.
#include "launcher/workers/preflight.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

using test::TempDir;

Options python_file(const std::string& script) {
  Options options;
  options.python = true;
  options.script_at = 2;
  options.substitute_from = 2;
  options.command = {"/bin/sh", "-u", script};
  return options;
}

std::optional<LaunchError> check(const Options& options) {
  return check_launch(options, options.nproc_per_node);
}

TEST(PreflightTest, AReadableFileAndAnInterpreterAreFine) {
  const TempDir directory;
  EXPECT_FALSE(check(python_file(directory.write("train.py", ""))));
}

TEST(PreflightTest, AFileBelowAFileIsNotThere) {
  const TempDir directory;
  const std::string path = directory.write("file", "") + "/train.py";
  const auto found = check(python_file(path));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->exit_code(), 127);
  EXPECT_EQ(found->text(), "open " + path + ": Not a directory");
}

TEST(PreflightTest, AFileOfEachWorkersOwnIsLookedAtForAll) {
  const TempDir directory;
  (void)directory.write("train0.py", "");
  auto options = python_file(directory.path() / "train$local_rank.py");
  EXPECT_FALSE(check(options));
  options.nproc_per_node = 2;
  const auto found = check(options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->attempted, "open " + (directory.path() / "train1.py").string());
  EXPECT_FALSE(check_script(options, 0));
  EXPECT_TRUE(check_script(options, 1));
}

TEST(PreflightTest, AnInterpreterIsLookedUpInTheWorkersPath) {
  const TempDir first;
  const TempDir second;
  const std::string script = first.write("train.py", "");
  auto options = python_file(script);
  options.command.front() = "snake";
  options.inherited = {"PATH=" + first.path().string() + ":" + second.path().string()};
  ASSERT_TRUE(check(options));
  EXPECT_EQ(check(options)->exit_code(), 127);
  (void)first.write("snake", "", false);
  EXPECT_EQ(check(options)->exit_code(), 126);
  (void)second.write("snake", "", true);
  EXPECT_FALSE(check(options));
  options.inherited.clear();
  EXPECT_TRUE(check(options));
}

TEST(PreflightTest, KnowsWhatAProgramIsMadeOf) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  const TempDir directory;
  const std::string folder = directory.path();
  const std::string python = directory.write("python3", "", true);
  const std::string bash = directory.write("bash", "", true);
  const std::string program = directory.write("train", "", true);
  const std::string script = directory.write("train.py", "");
  const auto files_of = [&](const std::vector<std::string>& command, std::size_t script_at = 0) {
    Program given;
    given.command = command;
    given.python = script_at != 0;
    given.script_at = script_at;
    given.inherited = {"PATH=" + folder};
    return program_files(given);
  };
  EXPECT_THAT(files_of({"python3", "-u", script}, 2).files, ElementsAre(script));
  EXPECT_EQ(files_of({"python3", "-u", script}, 2).interpreter, python);
  EXPECT_THAT(files_of({"python3", "-u", script, program}).files, ElementsAre(script));
  EXPECT_THAT(files_of({"train", script}).files, ElementsAre(program)) << "its arguments are data";
  EXPECT_EQ(files_of({"train"}).interpreter, python) << "it may run Python";
  EXPECT_THAT(files_of({"bash", script}).files, ElementsAre(bash, script));
  EXPECT_THAT(files_of({"bash", "-c", "true"}).files, ElementsAre(bash));
  EXPECT_THAT(files_of({"none-of-that-name"}).files, IsEmpty());
}

TEST(PreflightTest, AModuleIsPythonsToFind) {
  auto options = python_file("no.such.module");
  options.command = {"/bin/sh", "-u", "-m", "no.such.module"};
  options.script_at = 0;
  EXPECT_FALSE(check(options));
}

std::string trouble_with(const std::string& name, const std::string& path) {
  Options options;
  options.command = {name};
  options.inherited = {"PATH=" + path};
  const auto found = check(options);
  return found ? std::to_string(found->exit_code()) + " " + found->text() : "";
}

TEST(PreflightTest, AProgramIsLookedUpAsAShellDoes) {
  const TempDir directory;
  const std::string folder = directory.path();
  std::filesystem::create_directories(directory.path() / "data/train");
  const std::string program = directory.write("train", "", true);
  const std::string plain = directory.write("plain", "");
  std::filesystem::create_directory(directory.path() / "package");
  directory.write("package/__main__.py", "");
  const std::string nowhere = ": No such file or directory";
  const std::string not_executable = ": Permission denied; chmod +x makes it a program";
  const struct {
    std::string name, path, expected;
  } cases[] = {
      {program, "", ""},
      {"train", folder, ""},
      {"train", "/nonexistent:" + folder + "/data:" + folder, ""},
      {"train", "/nonexistent", "127 exec train" + nowhere + " in PATH"},
      {"train", folder + "/data", "127 exec train" + nowhere + " in PATH"},
      {folder + "/absent", folder, "127 exec " + folder + "/absent" + nowhere},
      {plain + "/below", "", "127 exec " + plain + "/below: Not a directory"},
      {plain, "", "126 exec " + plain + not_executable},
      {"plain", "/nonexistent:" + folder, "126 exec " + plain + not_executable},
      {folder, "", "126 exec " + folder + ": Is a directory"},
      {folder + "/package", "",
       "126 exec " + folder + "/package: Is a directory; --run-path runs it with Python"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(trouble_with(each.name, each.path), each.expected) << each.name;
}

TEST(PreflightTest, TheFileWithTheClosestNameIsNamed) {
  const TempDir directory;
  const std::string folder = directory.path();
  (void)directory.write("train.py", "");
  (void)directory.write("hello.sh", "", true);
  (void)directory.write("my train", "", true);
  std::filesystem::create_directory(directory.path() / "halo.sh");
  const std::string nowhere = ": No such file or directory";
  const auto opened = [&](const std::string& name) {
    const auto found = check(python_file(folder + name));
    return found ? found->text() : "";
  };
  EXPECT_EQ(opened("/trian.py"),
            "open " + folder + "/trian.py" + nowhere + "; did you mean " + folder + "/train.py?");
  EXPECT_EQ(opened("/other.py"), "open " + folder + "/other.py" + nowhere);
  EXPECT_EQ(opened("/none/train.py"), "open " + folder + "/none/train.py" + nowhere);
  EXPECT_EQ(trouble_with(folder + "/helo.sh", ""), "127 exec " + folder + "/helo.sh" + nowhere +
                                                       "; did you mean " + folder + "/hello.sh?");
  EXPECT_EQ(trouble_with(folder + "/mytrain", ""), "127 exec " + folder + "/mytrain" + nowhere +
                                                       "; did you mean '" + folder + "/my train'?");
}

TEST(PreflightTest, ACommandLineInOneWordIsExplained) {
  EXPECT_EQ(trouble_with("echo hi", "/bin"),
            "127 exec 'echo hi': No such file or directory; program and arguments are separate "
            "words");
  EXPECT_EQ(trouble_with("echo\n", "/bin"),
            "127 exec 'echo\\n': No such file or directory in PATH");
}

TEST(PreflightTest, AVariableBeforeTheProgramIsExplained) {
  EXPECT_EQ(trouble_with("LR=1", "/bin"),
            "127 exec LR=1: No such file or directory; to set a variable for the workers: drun env "
            "LR=1 PROGRAM");
  EXPECT_EQ(trouble_with("1=1", "/bin"), "127 exec 1=1: No such file or directory in PATH");
}

TEST(PreflightTest, ADashThatIsNoHyphenIsExplained) {
  const std::string dash = "\xE2\x80\x94";
  EXPECT_EQ(trouble_with(dash + "nproc", "/bin"),
            "127 exec " + dash +
                "nproc: No such file or directory; it begins with a typeset dash: a flag begins "
                "with hyphens");
}

TEST(PreflightTest, APythonProgramWithoutAnExtensionIsShownTheFlagForIt) {
  const TempDir directory;
  const std::string denied = ": Permission denied";
  const struct {
    const char* name;
    const char* text;
    const char* advice;  // if it may not be executed
    bool warned;         // if it may
  } cases[] = {
      {"plain", "\"\"\"Trains.\"\"\"\nimport os\n", "; --run-path runs it with Python", true},
      {"from", "# trains\n\nfrom os import path", "; --run-path runs it with Python", true},
      {"marked", "#!/usr/bin/env python3\nimport os\n",
       "; chmod +x makes it a program, --run-path runs it with Python", false},
      {"shell", "#!/bin/sh\nimport a.png\n", "; chmod +x makes it a program", false},
      {"script", "echo hello\n important\n", "; chmod +x makes it a program", false},
      {"empty", "", "; chmod +x makes it a program", false},
  };
  for (const auto& each : cases) {
    const std::string plain = directory.write(each.name, each.text);
    EXPECT_EQ(trouble_with(plain, ""), "126 exec " + plain + denied + each.advice);
    Options options;
    options.command = {directory.write(std::string(each.name) + "+x", each.text, true)};
    EXPECT_EQ(!shell_warning(options).empty(), each.warned) << each.name;
    options.python = true;
    EXPECT_EQ(shell_warning(options), "");
  }
  directory.write("zero", std::string("import os\n\0", 11), true);
  Options options;
  options.command = {"zero"};
  options.inherited = {"PATH=" + directory.path().string()};
  EXPECT_EQ(shell_warning(options), "");
  options.command = {"plain+x"};
  EXPECT_EQ(shell_warning(options),
            directory.path().string() +
                "/plain+x looks like Python but does not begin with #!, so /bin/sh runs it; "
                "--run-path runs it with Python");
  options.command = {"absent"};
  EXPECT_EQ(shell_warning(options), "");
}

TEST(PreflightDeathTest, AFileThatMayNotBeReadIs126) {
  const TempDir directory;
  const std::string script = directory.write("train.py", "");
  ASSERT_EQ(::chmod(script.c_str(), 0), 0);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const auto look = [&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(1);  // root may read everything
    const auto found = check(python_file(script));
    if (!found) ::_exit(0);
    std::fputs(found->text().c_str(), stderr);
    ::_exit(found->exit_code());
  };
  EXPECT_EXIT(look(), testing::ExitedWithCode(126), "open .*train.py: Permission denied");
}

}  // namespace
}  // namespace drun::launcher
