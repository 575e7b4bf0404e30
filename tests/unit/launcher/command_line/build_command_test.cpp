// The worker's command line: which interpreter, which arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "launcher/workers/environment.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse;
using test::words;
using ::testing::ElementsAre;

using Words = std::vector<std::string>;

TEST(CommandTest, AProgramIsRunAsItIs) {
  EXPECT_EQ(options_of("./train --lr 0.1").command, (Words{"./train", "--lr", "0.1"}));
  EXPECT_EQ(options_of("echo hi").command, (Words{"echo", "hi"}));
  EXPECT_EQ(options_of("--no-python train.py x").command, (Words{"train.py", "x"}));
  EXPECT_EQ(options_of("./.py").command, (Words{"python3", "-u", "./.py"}));
  EXPECT_EQ(options_of(".py").command, (Words{".py"}));  // a name without a stem
  EXPECT_EQ(options_of("train.pyc").command, (Words{"train.pyc"}));
}

TEST(CommandTest, PythonFilesAndModulesGetTheInterpreter) {
  EXPECT_EQ(options_of("train.py --lr 1").command,
            (Words{"python3", "-u", "train.py", "--lr", "1"}));
  EXPECT_EQ(options_of("-m pkg.train -m x").command,
            (Words{"python3", "-u", "-m", "pkg.train", "-m", "x"}));
  EXPECT_EQ(options_of("--run-path script").command, (Words{"python3", "-u", "script"}));
  EXPECT_EQ(options_of("--run-path --no-python script").command,
            (Words{"python3", "-u", "script"}));  // as torchrun
  EXPECT_EQ(options_of("train.py", {"PYTHON_EXEC=/opt/py"}).command,
            (Words{"/opt/py", "-u", "train.py"}));
  EXPECT_EQ(options_of("train.py", {"PYTHON_EXEC="}).command, (Words{"python3", "-u", "train.py"}));
  EXPECT_EQ(options_of("train.py", {"PET_NO_PYTHON=1"}).command, (Words{"train.py"}));
}

TEST(CommandTest, TheOlderCommandAppendsTheLocalRank) {
  const Parsed parsed = parse(words("--nproc-per-node 2 train.py --x"), {}, "/usr/bin/drun-launch");
  ASSERT_TRUE(parsed.options) << parsed.text;
  EXPECT_EQ(worker_command(*parsed.options, 1),
            (Words{"python3", "-u", "train.py", "--local-rank=1", "--x"}));
  const Parsed module = parse(words("-m pkg.train --x"), {}, "drun-launch");
  EXPECT_EQ(worker_command(*module.options, 0),
            (Words{"python3", "-u", "-m", "pkg.train", "--local-rank=0", "--x"}));
  const Parsed plain = parse(words("./train"), {}, "drun-launch");
  EXPECT_EQ(worker_command(*plain.options, 3), (Words{"./train", "--local-rank=3"}));
  const Parsed env = parse(words("--use-env train.py --x"), {}, "drun-launch");
  EXPECT_EQ(worker_command(*env.options, 1), (Words{"python3", "-u", "train.py", "--x"}));
  EXPECT_EQ(parse(words("--no-python ./train"), {}, "drun-launch").text,
            "drun: error: --no-python needs --use-env: only Python scripts expect "
            "--local-rank=N\n");
  EXPECT_EQ(parse(words("--no-python --use_env ./train"), {}, "drun-launch").options->command,
            (Words{"./train"}));
}

TEST(CommandTest, MistakesAreNamed) {
  EXPECT_EQ(parse({}).text,
            "drun: error: no program given: drun [flags] PROGRAM [args...] (drun "
            "--help lists the flags)\n");
  EXPECT_EQ(parse({""}).text, parse({}).text);
  EXPECT_EQ(parse({"--"}).text, parse({}).text);
  EXPECT_EQ(parse({"-m"}).text,
            "drun: error: -m needs the name of a module: drun [flags] -m MODULE [args...]\n");
  EXPECT_EQ(parse(words("-m --no-python x")).text,
            "drun: error: -m runs a Python module, --no-python runs none: give one of them\n");
  EXPECT_EQ(parse(words("-m --run-path x")).text,
            "drun: error: -m names a module, --run-path a file: give one of them\n");
}

// As string.Template.safe_substitute with local_rank=3, but for "$$", which stays.
TEST(CommandTest, TheLocalRankIsSubstitutedAsTorchrunDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"$local_rank", "3"},
      {"${local_rank}", "3"},
      {"--log=r${local_rank}.txt", "--log=r3.txt"},
      {"$local_rank-$local_rank/${local_rank}${local_rank}", "3-3/33"},
      {"$local_rank1", "$local_rank1"},
      {"$local_ranks", "$local_ranks"},
      {"${local_rank", "${local_rank"},
      {"${local_rank }", "${local_rank }"},
      {"$LOCAL_RANK ${LOCAL_RANK}", "$LOCAL_RANK ${LOCAL_RANK}"},
      {"$HOME ${rank} $1 $", "$HOME ${rank} $1 $"},
      {"$$", "$$"},
      {"$$local_rank", "$$local_rank"},
      {"$$$local_rank", "$$3"},
      {"$$${local_rank}", "$$3"},
      {"a$.local_rank", "a$.local_rank"},
      {"\xc3\xa9$local_rank\xc3\xa9",
       "\xc3\xa9"
       "3\xc3\xa9"},
      {"$local_rank\xc3\xa9", "3\xc3\xa9"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(substitute_local_rank(text, 3), expected) << text;
  }
}

TEST(CommandTest, TheScriptIsSubstitutedButNoProgramAndNoInterpreter) {
  const std::vector<std::string> odd{"PYTHON_EXEC=/$local_rank/py"};
  EXPECT_THAT(worker_command(options_of("s$local_rank.py $local_rank -- $$", odd), 2),
              ElementsAre("/$local_rank/py", "-u", "s2.py", "2", "--", "$$"));
  EXPECT_THAT(worker_command(options_of("-m pkg.$local_rank x"), 2),
              ElementsAre("python3", "-u", "-m", "pkg.2", "x"));
  EXPECT_THAT(worker_command(options_of("./p$local_rank $local_rank"), 2),
              ElementsAre("./p$local_rank", "2"));
  EXPECT_THAT(
      worker_command(options_of("--virtual-local-rank --nproc-per-node 3 ./p $local_rank"), 2),
      ElementsAre("./p", "2"));  // the real one, as torchrun
}

}  // namespace
}  // namespace drun::launcher
