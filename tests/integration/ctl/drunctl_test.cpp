// drunctl as a shell script uses it.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/store/client.hpp"
#include "store/client/control_query.hpp"
#include "store/protocol/control_protocol.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"
#include "support/scripted_peer.hpp"
#include "support/store_thread.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::DrunProcess;
using test::Finished;
using test::kPatience;
using testing::HasSubstr;

const std::string kDrunctl = places::program("drunctl");

class DrunctlTest : public testing::Test {
 protected:
  // drunctl with these arguments, against this test's store.
  test::Launch launch(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kDrunctl);
    return {std::move(arguments), {"DRUN_STORE=" + to_string(store_.endpoint())}, {}};
  }
  Finished ctl(std::vector<std::string> arguments) const {
    return DrunProcess(launch(std::move(arguments))).finish();
  }
  // A line of shell in which $CTL is drunctl.
  Finished shell(const std::string& line) const {
    return DrunProcess(
               test::Launch{{"/bin/sh", "-c", line},
                            {"DRUN_STORE=" + to_string(store_.endpoint()), "CTL=" + kDrunctl},
                            {}})
        .finish();
  }
  Client client(ClientOptions options = {}) const {
    auto client = Client::connect(store_.endpoint(), Client::Clock::now() + kPatience, options);
    EXPECT_TRUE(client);
    return std::move(*client);
  }

  test::StoreThread store_;
};

// Long before the next change comes.
TEST_F(DrunctlTest, WatchEndsQuietlyWithItsReader) {
  ASSERT_TRUE(client().set("k", "v"));
  ASSERT_EQ(client().check({"k"}, kPatience).value(), true);
  for (const char* before : {"", "trap '' PIPE; "}) {
    const Finished ended =
        shell(std::string(before) + R"({ "$CTL" watch k; echo "$?" >&2; } | head -n 1)");
    EXPECT_EQ(ended.out, "is k v\n");
    EXPECT_EQ(ended.err, "141\n");
  }
}

// The keys of drun's jobs have no "/" before them: an empty list would be no answer.
TEST_F(DrunctlTest, KeysSaysHowManyItHides) {
  EXPECT_EQ(ctl({"set", "mine", "v"}).code, 0);
  EXPECT_EQ(ctl({"keys"}).err, "");
  for (const char* key : {"drun/a/round", "drun/b/round", "else"})
    EXPECT_EQ(ctl({"--raw", "set", key, "v"}).code, 0);
  const Finished all = ctl({"keys"});
  EXPECT_EQ(all.out, "mine\n");
  EXPECT_EQ(all.err,
            "drunctl: 3 keys are not shown: --raw shows those without \"/\" before them\n");
  EXPECT_EQ(ctl({"keys", "--json"}).out, "[\"mine\"]\n");
  EXPECT_EQ(ctl({"keys", "drun/a/"}).err,
            "drunctl: 1 key is not shown: --raw shows those without \"/\" before them\n");
  EXPECT_EQ(ctl({"keys", "m"}).err, "");
  EXPECT_EQ(ctl({"--prefix", "p", "keys"}).err, "") << "asked for";
  EXPECT_EQ(ctl({"--raw", "keys"}).err, "");
  EXPECT_EQ(ctl({"--raw", "keys"}).out, "/mine\ndrun/a/round\ndrun/b/round\nelse\n");
}

TEST_F(DrunctlTest, ReadsTheCommandBehindTwoDashesToo) {
  EXPECT_EQ(ctl({"--", "set", "--k", "v"}).code, 0);
  EXPECT_EQ(ctl({"--", "get", "--k"}).out, "v");
  const Finished wrong = ctl({"--", "gte", "k"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("there is no command 'gte'; did you mean get?"));
  EXPECT_THAT(ctl({"get", "--wiat", "k"}).err, HasSubstr("did you mean --wait?"));
  EXPECT_THAT(ctl({"ping", "--tmeout", "1"}).err, HasSubstr("did you mean --timeout?"));
}

TEST_F(DrunctlTest, AnEmptyVariableIsNoneAndItsPortIsItsOwn) {
  const auto says = [&](const std::string& variable, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kDrunctl);
    return DrunProcess(test::Launch{std::move(arguments), {"DRUN_STORE=" + variable}, {}})
        .finish()
        .err;
  };
  EXPECT_THAT(says("127.0.0.1:no", {"ping"}),
              HasSubstr("DRUN_STORE '127.0.0.1:no': a port is a number"));
  EXPECT_THAT(says("", {"ping", "--prefix"}), testing::Not(HasSubstr("DRUN_STORE")));
  // No TCP connection leads to that address, whatever else runs here with drun's own port.
  EXPECT_THAT(says("127.0.0.1:9", {"--endpoint", "255.255.255.255", "ping"}),
              HasSubstr("255.255.255.255:29400"));
  EXPECT_THAT(says("127.0.0.1:no", {"--endpoint", "127.1.2.3:1", "ping"}),
              HasSubstr("127.1.2.3:1:"));
}

TEST_F(DrunctlTest, SetsAndGetsBytesUnchanged) {
  EXPECT_EQ(ctl({"set", "k", "plain"}).code, 0);
  EXPECT_EQ(ctl({"get", "k"}).out, "plain");
  const std::string binary("\0\xff\n\r\x1b", 5);
  EXPECT_EQ(shell(R"(printf '\000\377\n\r\033' | "$CTL" set b -)").code, 0);
  EXPECT_EQ(ctl({"get", "b"}).out, binary);
  test::TempDir directory;
  const std::string large(3 << 20, '\x80');
  EXPECT_EQ(ctl({"set", "f", "--file", directory.write("value", large)}).code, 0);
  EXPECT_EQ(ctl({"get", "f"}).out, large);
  EXPECT_EQ(ctl({"set", "--", "--odd", ""}).code, 0);
  EXPECT_EQ(ctl({"get", "--", "--odd"}).out, "");
}

// A value is printed, never sent: not even where its request to the store could be.
TEST_F(DrunctlTest, AClosedStandardStreamIsNotTheConnection) {
  const std::string key = "/injected";
  std::string request("\x01", 1);  // SET of torch 1.13
  const auto put = [&request](const std::string& bytes) {
    const std::uint64_t size = bytes.size();
    request.append(reinterpret_cast<const char*>(&size), sizeof size);
    request += bytes;
  };
  put(key);
  put("1");
  ASSERT_TRUE(client().set("evil", request));
  EXPECT_EQ(shell(R"("$CTL" get evil <&- >&- 2>&-)").code, 0);
  EXPECT_THAT(ctl({"keys"}).out, testing::Not(HasSubstr("injected")));
}

TEST_F(DrunctlTest, SaysWhatItCannotWriteOrRead) {
  for (const std::string flag : {"--help", "--version", "--print-man"}) {
    const Finished full = shell("\"$CTL\" " + flag + " > /dev/full");
    EXPECT_EQ(full.code, 125) << flag;
    EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  }
  const Finished folder = ctl({"set", "k", "--file", "/tmp"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("'/tmp': Is a directory"));
  EXPECT_EQ(ctl({"barrier", "fresh", "0"}).code, 2);
}

TEST_F(DrunctlTest, SeesTheKeysOfTorchsClients) {
  auto plain = client();
  ASSERT_TRUE(plain.set("shared", "from C++"));
  EXPECT_EQ(ctl({"get", "shared"}).out, "from C++");
  EXPECT_EQ(ctl({"--raw", "get", "/shared"}).out, "from C++");
  auto prefixed = client({.version = {}, .prefix = "job"});
  ASSERT_TRUE(prefixed.set("k", "v"));
  EXPECT_EQ(ctl({"get", "k", "--prefix", "job"}).out, "v");
  EXPECT_EQ(ctl({"keys"}).out, "job/k\nshared\n");
  EXPECT_EQ(ctl({"keys", "--prefix=job"}).out, "k\n");
  EXPECT_EQ(ctl({"keys", "--raw", "/s"}).out, "/shared\n");
  EXPECT_EQ(ctl({"keys", "--null"}).out, std::string("job/k\0shared\0", 13));
}

TEST_F(DrunctlTest, ExitCodesAnswerQuestions) {
  EXPECT_EQ(ctl({"get", "missing"}).code, 1);
  EXPECT_THAT(ctl({"get", "missing"}).err, HasSubstr("there is no key 'missing'"));
  EXPECT_EQ(ctl({"check", "missing"}).code, 1);
  EXPECT_EQ(ctl({"delete", "missing"}).code, 1);
  ASSERT_EQ(ctl({"set", "a", "1"}).code, 0);
  EXPECT_EQ(ctl({"check", "a"}).code, 0);
  EXPECT_EQ(ctl({"check", "a", "missing"}).code, 1);
  EXPECT_EQ(ctl({"wait", "a"}).code, 0);
  EXPECT_EQ(ctl({"delete", "a"}).code, 0);
  EXPECT_EQ(ctl({"delete", "a"}).code, 1);

  EXPECT_EQ(ctl({"compare-set", "c", "", "one"}).code, 0);
  const Finished lost = ctl({"compare-set", "c", "two", "three"});
  EXPECT_EQ(lost.code, 1);
  EXPECT_EQ(lost.out, "one");
  EXPECT_EQ(ctl({"compare-set", "none", "x", "y"}).code, 1);
  EXPECT_EQ(ctl({"compare-set", "none", "x", "x"}).code, 1);
  EXPECT_EQ(ctl({"check", "none"}).code, 1);
}

TEST_F(DrunctlTest, AddsAndPrintsTheSum) {
  EXPECT_EQ(ctl({"add", "n"}).out, "1\n");
  EXPECT_EQ(ctl({"add", "n", "41"}).out, "42\n");
  EXPECT_EQ(ctl({"add", "n", "-50"}).out, "-8\n");
  EXPECT_EQ(ctl({"add", "n", "0", "--json"}).out, "{\"key\":\"n\",\"value\":-8}\n");
  ASSERT_EQ(ctl({"set", "word", "x"}).code, 0);
  const Finished broken = ctl({"add", "word"});
  EXPECT_EQ(broken.code, 125);
  EXPECT_THAT(broken.err, HasSubstr("other than a number"));
}

TEST_F(DrunctlTest, TimesEndIn124) {
  // All at once, each with time enough to connect: else that would be what took too long.
  DrunProcess wait(launch({"wait", "never", "--timeout", "8000ms"}));
  DrunProcess get(launch({"get", "--wait", "never", "--timeout", "8"}));
  DrunProcess barrier(launch({"barrier", "b", "2", "--timeout", "8"}));
  DrunProcess watch(launch({"watch", "--timeout", "8"}));
  const Finished late = wait.finish();
  EXPECT_EQ(late.code, 124);
  EXPECT_THAT(late.err, HasSubstr("wait 'never'"));
  EXPECT_EQ(get.finish().code, 124);
  EXPECT_EQ(barrier.finish().code, 124);
  EXPECT_EQ(watch.finish().code, 124);
}

TEST_F(DrunctlTest, WaitsEndWhenTheKeyComes) {
  DrunProcess waiting(launch({"get", "--wait", "late"}));
  auto setter = client();
  ASSERT_TRUE(setter.set("late", "now"));
  const Finished finished = waiting.finish();
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out, "now");
  DrunProcess first(launch({"barrier", "here", "2"}));
  EXPECT_EQ(ctl({"barrier", "here", "2"}).code, 0);
  EXPECT_EQ(first.finish().code, 0);
}

TEST_F(DrunctlTest, JsonIsBase64WhereItMustBe) {
  auto setter = client();
  ASSERT_TRUE(setter.set("text", "gr\xc3\xbc\xc3\x9f\"e\n"));
  ASSERT_TRUE(setter.set("bytes", std::string("a\0\xff", 3)));
  ASSERT_TRUE(setter.set("\xff", ""));
  EXPECT_EQ(ctl({"get", "text", "--json"}).out,
            "{\"key\":\"text\",\"value\":\"gr\xc3\xbc\xc3\x9f\\\"e\\n\"}\n");
  EXPECT_EQ(ctl({"get", "bytes", "--json"}).out, "{\"key\":\"bytes\",\"value_base64\":\"YQD/\"}\n");
  EXPECT_EQ(ctl({"keys", "--json"}).out, "[\"bytes\",\"text\",{\"base64\":\"/w==\"}]\n");
}

TEST_F(DrunctlTest, WatchShowsWhatIsThereAndEveryChange) {
  auto setter = client();
  ASSERT_TRUE(setter.set("w/old", "1\n2"));
  ASSERT_TRUE(setter.set("other", "x"));
  DrunProcess text(launch({"watch", "w/", "--count", "3"}));
  DrunProcess json(launch({"watch", "w/", "--count", "3", "--json"}));
  ASSERT_TRUE(text.wait_for_out("is w/old 1\\n2\n"));
  ASSERT_TRUE(json.wait_for_out("is"));
  ASSERT_TRUE(setter.set("w/new", "\xff"));
  ASSERT_TRUE(setter.set("other", "y"));
  ASSERT_EQ(setter.add("w/n", 2).value(), 2);
  ASSERT_TRUE(setter.delete_key("w/old").value());
  EXPECT_EQ(text.finish().out, "is w/old 1\\n2\nset w/new \\xff\nset w/n 2\ndelete w/old\n");
  EXPECT_EQ(json.finish().out,
            "{\"event\":\"is\",\"key\":\"w/old\",\"value\":\"1\\n2\"}\n"
            "{\"event\":\"set\",\"key\":\"w/new\",\"value_base64\":\"/w==\"}\n"
            "{\"event\":\"set\",\"key\":\"w/n\",\"value\":\"2\"}\n"
            "{\"event\":\"delete\",\"key\":\"w/old\"}\n");
  DrunProcess exact(launch({"watch", "--exact", "w/n", "--count", "1"}));
  ASSERT_TRUE(exact.wait_for_out("is w/n 2\n"));
  ASSERT_TRUE(setter.set("w/new", "not this"));
  ASSERT_TRUE(setter.set("w/n", "3"));
  EXPECT_EQ(exact.finish().out, "is w/n 2\nset w/n 3\n");
}

TEST_F(DrunctlTest, StatsAndPing) {
  ASSERT_EQ(ctl({"set", "k", "v"}).code, 0);
  EXPECT_THAT(ctl({"stats"}).out, HasSubstr("keys 1\n"));
  EXPECT_THAT(ctl({"stats", "--json"}).out, HasSubstr("\"keys\":1"));
  EXPECT_THAT(ctl({"ping"}).out, HasSubstr("answers in"));
  EXPECT_THAT(ctl({"ping", "--json"}).out,
              HasSubstr("\"endpoint\":\"" + to_string(store_.endpoint()) + "\""));
}

TEST_F(DrunctlTest, AStoreThatIsNotThereIs125AndRetryWaitsForIt) {
  test::ReservedPort port;
  // Time enough for one try: without any the end of the time would be all there is to say.
  DrunProcess vain(launch({"--endpoint", port.endpoint(), "--retry", "--timeout", "8", "ping"}));
  const Finished down = ctl({"--endpoint", port.endpoint(), "get", "k"});
  EXPECT_EQ(down.code, 125);
  EXPECT_THAT(down.err, HasSubstr("connect to " + port.endpoint() + ": Connection refused"));
  EXPECT_EQ(ctl({"--endpoint", port.endpoint(), "watch"}).code, 125);
  EXPECT_EQ(vain.finish().code, 125);
  DrunProcess patient(launch({"--endpoint", port.endpoint(), "--retry", "ping"}));
  const test::StoreThread late(static_cast<std::uint16_t>(port.number()));
  EXPECT_EQ(patient.finish().code, 0);
}

TEST_F(DrunctlTest, WrongUsageIsOneLineAndExitCode2) {
  const struct {
    std::vector<std::string> arguments;
    const char* says;
  } cases[] = {
      {{}, "a command is missing"},
      {{"fetch", "k"}, "there is no command 'fetch'"},
      {{"get"}, "expected: drunctl get KEY"},
      {{"get", "a", "b"}, "expected: drunctl get KEY"},
      {{"set", "k"}, "set KEY VALUE"},
      {{"set", "k", "v", "--file", "x"}, "set KEY VALUE"},
      {{"set", "k", "--file", "/no/such/file"}, "--file '/no/such/file': No such file"},
      {{"add", "k", "many"}, "'many': expected a whole number"},
      {{"get", "k", "--timeout", "soon"},
       "--timeout 'soon': expected a time such as 90 (seconds), 5m or 1h30m"},
      {{"get", "k", "--timeout"}, "--timeout needs a value: TIME"},
      {{"get", "k", "--verbose"}, "unknown flag '--verbose'"},
      {{"get", "k", "--endpoint", "a b"}, "--endpoint 'a b'"},
      {{"watch", "--count", "0"}, "--count '0': expected a whole number of at least 1"},
      {{"get", "k", "--retry=3"}, "--retry takes no value, and got '3'"},
      {{"stats", "--wait"}, "unknown flag '--wait'"},
      {{"ping", "--print-completion", "tcsh"}, "'tcsh': expected bash, zsh or fish"},
  };
  for (const auto& c : cases) {
    const Finished finished = ctl(c.arguments);
    EXPECT_EQ(finished.code, 2) << c.says;
    EXPECT_THAT(finished.err, HasSubstr(c.says));
    EXPECT_EQ(test::split_lines(finished.err).size(), 1U) << finished.err;
    EXPECT_EQ(finished.out, "") << c.says;
  }
  EXPECT_EQ(ctl({"--help"}).code, 0);
  EXPECT_THAT(ctl({"--help"}).out, AllOf(HasSubstr("Exit codes"), HasSubstr("of status 3")));
  EXPECT_THAT(ctl({"--version"}).out, testing::StartsWith("drunctl "));
}

// An agent at the endpoint of a job whose store has gone to another node.
TEST_F(DrunctlTest, GoesWhereTheJobsStoreIsNow) {
  const test::StoreThread later;
  const auto deadline = Client::Clock::now() + kPatience;
  auto teller = ControlQuery::open(store_.endpoint(), deadline, false, nullptr);
  ASSERT_TRUE(teller);
  const auto told =
      teller->send(control::Find{2, "127.0.0.1", later.endpoint().port, "drun/a/", 0}, deadline);
  ASSERT_TRUE(told);
  ASSERT_TRUE(teller->receive(*told, deadline));
  auto there = Client::connect(later.endpoint(), deadline);
  ASSERT_TRUE(there);
  ASSERT_TRUE(there->set("k", "here", kPatience));
  const Finished found = ctl({"get", "k"});
  EXPECT_EQ(found.out, "here");
  EXPECT_THAT(found.err, HasSubstr("the store is now at " + to_string(later.endpoint())));
  EXPECT_EQ(ctl({"stats"}).err, "") << "of the one that was asked for";
  EXPECT_EQ(ctl({"ping"}).err, "");
  // Who holds something speaks for itself.
  auto here = client();
  ASSERT_TRUE(here.set("k", "old", kPatience));
  const Finished own = ctl({"get", "k"});
  EXPECT_EQ(own.out, "old");
  EXPECT_EQ(own.err, "");
}

TEST_F(DrunctlTest, TakesWordsAsTheyAre) {
  for (const char* key : {"[a,b]", "{}", "%%", "get", "wait", "", "a b", "-7", "-"}) {
    EXPECT_EQ(ctl({"set", key, "v"}).code, 0) << key;
    EXPECT_EQ(ctl({"get", key}).out, "v") << key;
    EXPECT_EQ(ctl({"wait", key, key, "--timeout", "60s"}).code, 0) << key;
  }
  EXPECT_EQ(ctl({"set", "--", "--raw", "--json"}).code, 0);
  EXPECT_EQ(ctl({"get", "--prefix", "no", "--prefix", "", "--", "--raw"}).out, "--json");
}

// What a program shows at a terminal, until it ends.
std::string at_terminal(std::vector<std::string> argv) {
  int master = -1;
  const pid_t child = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (child == 0) {
    std::vector<char*> words;
    for (std::string& word : argv)
      words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  const FileDescriptor end(master);
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(end.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  ::waitpid(child, nullptr, 0);
  return text;
}

const std::string kEvil = "evil\x1b[2J\a\xc2\x9b";
const std::string kHarmless = "evil\\x1b[2J\\x07\\xc2\\x9b";

TEST_F(DrunctlTest, WhatAStoreHoldsDoesNotActOnATerminal) {
  ASSERT_TRUE(client().set(kEvil, kEvil + "\n" + kEvil));
  ASSERT_EQ(client().check({kEvil}, kPatience).value(), true);
  const auto shows = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {kDrunctl, "--endpoint", to_string(store_.endpoint())});
    return at_terminal(words);
  };
  EXPECT_EQ(shows({"keys"}), kHarmless + "\r\n");
  EXPECT_EQ(shows({"get", kEvil}), kHarmless + "\r\n" + kHarmless);
  EXPECT_THAT(shows({"compare-set", kEvil, "x", "y"}), HasSubstr(kHarmless));
  EXPECT_THAT(shows({"--timeout", "0.1", "watch"}),
              HasSubstr("is " + kHarmless + " " + kHarmless + "\\n" + kHarmless + "\r\n"));
  EXPECT_THAT(shows({"--json", "keys"}), HasSubstr("evil\\u001b[2J\\u0007\\u009b"));
  EXPECT_THAT(shows({"get", "no" + kEvil}), HasSubstr("there is no key 'no" + kHarmless + "'"));
  EXPECT_EQ(ctl({"keys"}).out, kEvil + "\n") << "a script gets the bytes";
  EXPECT_EQ(ctl({"get", kEvil}).out, kEvil + "\n" + kEvil);
}

TEST_F(DrunctlTest, WhatAForeignStoreSaysDoesNotActOnATerminal) {
  std::atomic<bool> refuses = false;  // the peer has a thread of its own
  test::ScriptedPeer foreign([&](test::ScriptedConnection& connection) {
    std::string reply;
    control::encode(reply, 0, control::Reply(control::Welcome{}));
    if (refuses)
      control::encode(reply, 1, control::Reply(control::Error{control::ErrorCode::Limit, kEvil}));
    else
      control::encode(reply, 1, control::Reply(control::Counters{{{kEvil, 1}}}));
    connection.write(reply);
    connection.wait_for_close();
  });
  const std::string endpoint = to_string(foreign.endpoint());
  EXPECT_EQ(ctl({"--endpoint", endpoint, "stats"}).out, kHarmless + " 1\n");
  refuses = true;
  const Finished refused = ctl({"--endpoint", endpoint, "stats"});
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr(": " + kHarmless + "\n"));
}

// As PyTorch's own servers do.
TEST_F(DrunctlTest, APeerThatClosesWhenItIsGreetedIsNoStore) {
  test::ScriptedPeer foreign([](test::ScriptedConnection& connection) { connection.read(1); });
  const Finished refused = ctl({"--endpoint", to_string(foreign.endpoint()), "stats"});
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr("not a drun store: it closes the connection when"));
}

TEST_F(DrunctlTest, HelpManualAndCompletionsNameTheSameThings) {
  const std::string manual = ctl({"--print-man"}).out;
  EXPECT_THAT(manual, testing::StartsWith(".TH DRUNCTL 1 \"\" \"drunctl "));
  const std::string help = ctl({"--help"}).out;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string completion = ctl({"--print-completion", shell}).out;
    for (const char* name : {"compare-set", "watch", "endpoint", "exact", "json"}) {
      EXPECT_THAT(completion, HasSubstr(name)) << shell;
      EXPECT_THAT(help, HasSubstr(name));
    }
  }
  EXPECT_THAT(manual, HasSubstr("\n.B compare\\-set KEY EXPECTED NEW\n"));
}

}  // namespace
}  // namespace drun::store
