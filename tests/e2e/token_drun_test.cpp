// Jobs with a token: who has it takes part, nobody else gets anything, and both sides are told.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "support/drun_process.hpp"
#include "support/eavesdropper.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kToken = "the-token-of-the-job-0123456789ab";
const std::string kOther = "the-token-of-the-job-0123456789ac";
const std::string kAdvice = "give the same DRUN_TOKEN or --token-file on every node";

Launch with_token(const std::string& token) {
  Launch launch;
  if (!token.empty()) launch.environment = {"DRUN_TOKEN=" + token};
  return launch;
}

class TokenTest : public AgentsOfAJob {
 protected:
  Arguments job(const std::string& nodes, const Arguments& more = {}) const {
    return job_at(port_.endpoint(), nodes, more);
  }
  static Arguments job_at(const std::string& endpoint, const std::string& nodes,
                          const Arguments& more = {}) {
    return Arguments{"--nnodes", nodes, "--rdzv-endpoint", endpoint, "--rdzv-id", "the-name"} +
           more;
  }
  // The one that hosts the store, which waits for others.
  DrunProcess& start_host(const std::string& token) {
    start(job("2") + telling_workers(), with_token(token));
    EXPECT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
    return agent(0);
  }
  void start(const Arguments& arguments, const Launch& launch) {
    agents_.push_back(std::make_unique<DrunProcess>(arguments, launch));
  }
  // Of a job that goes on with two, each with a lease that no test waits for.
  void start_three() {
    const Arguments arguments =
        job("2:3", {"--rdzv-conf",
                    "last_call_timeout=0.3,successors=3,keep_alive_interval=60,"
                    "keep_alive_max_attempt=10"}) +
        telling_workers();
    start(arguments, with_token(kToken));
    ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
    start(arguments, with_token(kToken));
    start(arguments, with_token(kToken));
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_TRUE(says(i, " of 3 ")) << agent(i).err();
  }
  // An agent that comes to the host with this token is refused at once, and each says why.
  void expect_refused(const std::string& token, const std::string& why,
                      const std::string& said_by_host) {
    DrunProcess guest(job("2", {"--rdzv-conf", "is_host=0"}) + telling_workers(),
                      with_token(token));
    const Finished finished = guest.finish();
    EXPECT_EQ(finished.code, 125) << finished.err;
    EXPECT_EQ(finished.err,
              "drun: error: the store at " + port_.endpoint() + " " + why + ": " + kAdvice + "\n");
    EXPECT_TRUE(agent(0).wait_for_err(said_by_host)) << agent(0).err();
    EXPECT_TRUE(agent(0).running());
  }
  Finished drunctl(const Arguments& arguments, const std::string& token) const {
    Launch launch = with_token(token);
    launch.argv = Arguments{places::program("drunctl"), "--endpoint", port_.endpoint()} + arguments;
    return DrunProcess(launch).finish();
  }

  ReservedPort port_;
};

TEST_F(TokenTest, AgentsWithTheSameTokenRunAJobAndWorkersDoNotGetIt) {
  const TempDir folder;
  const std::string file = folder.write("token", kToken + "\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const Arguments program{"sh", "-c", "env | grep -c TOKEN=; echo rank $RANK of $WORLD_SIZE"};
  start(job("2") + program, with_token(kToken));
  start(job("2", {"--token-file", file}) + program, {});
  for (std::size_t i = 0; i < 2; ++i) {
    const Finished finished = agent(i).finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr(" of 2\n"));
    EXPECT_THAT(finished.out, HasSubstr("0\n"));
    EXPECT_THAT(finished.err, Not(HasSubstr("warning")));
  }
}

TEST_F(TokenTest, TheAgentsOfOneCommandShareIt) {
  const Arguments program{"sh", "-c", "echo rank $RANK of $WORLD_SIZE"};
  for (const Arguments& how : {Arguments{"--local-nodes", "2"}, Arguments{"--nproc-per-node", "2"},
                               Arguments{"--replica-groups", "2", "--local-nodes", "2"},
                               Arguments{"--standalone", "--nproc-per-node", "2"}}) {
    DrunProcess all(how + program, with_token(kToken));
    const Finished finished = all.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr("rank 1 of 2\n"));
    EXPECT_THAT(finished.err, Not(HasSubstr("warning")));
  }
}

TEST_F(TokenTest, AnotherTokenIsOneLineOnBothSides) {
  start_host(kToken);
  expect_refused(kOther, "does not know this token", "it has another token");
  stop_all(0);
}

TEST_F(TokenTest, ATokenThatIsMissingIsOneLineOnBothSides) {
  start_host(kToken);
  expect_refused("", "asks for a token", "it shows no token, which this store asks for");
  stop_all(0);
}

TEST_F(TokenTest, AHostWithoutATokenIsOneLineOnBothSides) {
  start_host("");
  expect_refused(kToken, "speaks without a token",
                 "it has a token or a certificate, and this store has none");
  stop_all(0);
}

TEST_F(TokenTest, OnTheWayNobodyReadsWhatAgentsSay) {
  for (const bool secret : {false, true}) {
    const std::string token = secret ? kToken : "";
    const ReservedPort port;
    Eavesdropper ear(port.number());
    const Arguments program{"sh", "-c", "echo rank $RANK of $WORLD_SIZE"};
    DrunProcess host(job_at(port.endpoint(), "2") + program, with_token(token));
    ASSERT_TRUE(host.wait_for_err("waiting")) << host.err();
    DrunProcess guest(job_at(ear.endpoint(), "2", {"--rdzv-conf", "is_host=0"}) + program,
                      with_token(token));
    EXPECT_EQ(guest.finish().code, 0) << guest.err();
    EXPECT_EQ(host.finish().code, 0) << host.err();
    const std::string& heard = ear.heard();
    EXPECT_GT(heard.size(), 1'000U);
    for (const std::string text : {"drun/", "the-name", "leader", "max-restarts"}) {
      if (secret)
        EXPECT_THAT(heard, Not(HasSubstr(text)));
      else
        EXPECT_THAT(heard, HasSubstr(text)) << "it is there to be heard";
    }
    EXPECT_THAT(heard, Not(HasSubstr(kToken)));
  }
}

TEST_F(TokenTest, DrunctlNeedsTheToken) {
  start_host(kToken);
  const Finished status = drunctl({"status"}, kToken);
  EXPECT_THAT(status.out, HasSubstr("job the-name")) << status.err;
  EXPECT_EQ(drunctl({"set", "key", "value"}, kToken).code, 0);
  EXPECT_EQ(drunctl({"get", "key"}, kToken).out, "value");
  for (const Arguments& command : {Arguments{"status"}, Arguments{"get", "key"}}) {
    const Finished other = drunctl(command, kOther);
    EXPECT_EQ(other.code, 125);
    EXPECT_THAT(other.err, HasSubstr("it does not know this token: " + kAdvice));
    const Finished without = drunctl(command, "");
    EXPECT_EQ(without.code, 125);
    EXPECT_EQ(without.out, "");
  }
  EXPECT_THAT(drunctl({"get", "key"}, "").err, HasSubstr("as a store does that asks for a token"));
  EXPECT_THAT(drunctl({"status"}, "").err, HasSubstr("it asks for a token: " + kAdvice));
  stop_all(0);
}

TEST_F(TokenTest, AStoreOfItsOwnServesOnlyWhoHasTheToken) {
  Launch launch = with_token(kToken);
  launch.argv = {places::program("drun-store"), "--bind", "127.0.0.1", "--port",
                 std::to_string(port_.number())};
  DrunProcess store(launch);
  ASSERT_TRUE(store.wait_for_out("\n")) << store.err();
  start(job("2", {"--rdzv-conf", "is_host=0"}) + telling_workers(), with_token(kToken));
  start(job("2", {"--rdzv-conf", "is_host=0"}) + telling_workers(), with_token(kToken));
  EXPECT_TRUE(says(0, " of 2 ")) << agent(0).err();
  EXPECT_TRUE(says(1, " of 2 ")) << agent(1).err();
  DrunProcess stranger(job("2", {"--rdzv-conf", "is_host=0"}) + telling_workers());
  EXPECT_EQ(stranger.finish().code, 125);
  EXPECT_THAT(stranger.err(), HasSubstr("asks for a token"));
  EXPECT_EQ(drunctl({"get", "key"}, "").code, 125);
  stop_all(0);
  store.signal(SIGTERM);
  EXPECT_TRUE(store.wait());
}

// With such a lease only the word of the dead node's helpers lets the others go on in time: it has
// the token, too, and so have those who serve the next store.
// Its owner has the store's token, and each job has one of its own.
TEST_F(TokenTest, JobsOfOneStoreReachOnlyWhatIsTheirs) {
  Launch launch = with_token(kToken);
  launch.argv = {places::program("drun-store"), "--bind", "127.0.0.1", "--port",
                 std::to_string(port_.number())};
  DrunProcess store(launch);
  ASSERT_TRUE(store.wait_for_out("\n")) << store.err();
  std::string tokens[2];
  for (int i = 0; i < 2; ++i) {
    tokens[i] = drunctl({"job-token", "job " + std::to_string(i)}, kToken).out;
    ASSERT_TRUE(tokens[i].starts_with("drun-job:job%20")) << tokens[i];
    tokens[i].pop_back();
  }
  const auto run = [&](int id, const std::string& token) {
    return DrunProcess(Arguments{"--rdzv-endpoint", port_.endpoint(), "--rdzv-conf",
                                 "is_host=false", "--rdzv-id", "job " + std::to_string(id), "sh",
                                 "-c", "echo rank $RANK of $WORLD_SIZE"},
                       with_token(token))
        .finish();
  };
  for (int i = 0; i < 2; ++i) {
    const Finished done = run(i, tokens[i]);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out, "rank 0 of 1\n");
    EXPECT_THAT(drunctl({"jobs"}, tokens[i]).out, HasSubstr("job " + std::to_string(i)));
    EXPECT_THAT(drunctl({"jobs"}, tokens[i]).out, Not(HasSubstr("job " + std::to_string(1 - i))));
  }
  EXPECT_THAT(drunctl({"jobs"}, kToken).out, AllOf(HasSubstr("job 0"), HasSubstr("job 1")));
  const Finished other = run(2, tokens[0]);
  EXPECT_EQ(other.code, 125);
  EXPECT_THAT(other.err, HasSubstr("knows this token as that of the job job%200 alone"));
  EXPECT_EQ(drunctl({"delete-job", "job 1"}, tokens[0]).code, 125);
  EXPECT_EQ(drunctl({"delete-job", "job 0"}, tokens[0]).code, 0);
  store.signal(SIGTERM);
  EXPECT_EQ(store.finish().code, 0);
}

TEST_F(TokenTest, TheOthersGoOnWhenTheHostDies) {
  ASSERT_NO_FATAL_FAILURE(start_three());
  agent(0).signal(SIGKILL);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(says(i, " of 2 ")) << agent(i).err();
  EXPECT_THAT(agent(1).err() + agent(2).err(),
              AllOf(HasSubstr(" (group rank 0) is gone"), Not(HasSubstr("dropped"))));
  EXPECT_TRUE(agent(0).survivors_gone(kPatience));
  EXPECT_TRUE(agent(0).wait());
  stop_all(1);
}

TEST_F(TokenTest, TheOthersGoOnWhenTheHostIsToldToGo) {
  ASSERT_NO_FATAL_FAILURE(start_three());
  agent(0).signal(SIGTERM);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(says(i, " of 2 ")) << agent(i).err();
  EXPECT_TRUE(agent(0).wait());
  EXPECT_THAT(agent(1).err() + agent(2).err(), Not(HasSubstr("dropped")));
  stop_all(1);
}

// Of agents that drun starts "elsewhere": two hosts, which are this machine.
class MadeTokenTest : public TokenTest {
 protected:
  static constexpr const char* kMeeting = "meeting at ";

  // The job runs; where its store is.
  std::string begin(const Arguments& flags, const Launch& launch = {}) {
    start(Arguments{"-v", "-H", "127.0.0.2,127.0.0.3", "--launcher", "env H={host}", "--rdzv-id",
                    name_} +
              flags + telling_workers(),
          launch);
    EXPECT_TRUE(says(0, " of 2 ")) << agent(0).err();
    const std::string said = agent(0).err();
    const auto at = said.find(kMeeting);
    if (at == std::string::npos) return "";
    const auto from = at + std::string(kMeeting).size();
    return said.substr(from, said.find('\n', from) - from);
  }
  static Finished ask(const Arguments& arguments, const std::string& token = "") {
    Launch launch = with_token(token);
    launch.argv = Arguments{places::program("drunctl")} + arguments;
    return DrunProcess(launch).finish();
  }

  // What drunctl finds on this host is this job's.
  const std::string name_ = "made-" + std::to_string(::getpid());
};

TEST_F(MadeTokenTest, AgentsThatDrunStartsGetOneThatTheirWorkersDoNotGet) {
  const std::string store = begin({});
  ASSERT_NE(store, "") << agent(0).err();
  const Finished other = ask({"--endpoint", store, "status"}, kOther);
  EXPECT_EQ(other.code, 125);
  EXPECT_THAT(other.err, HasSubstr("it does not know this token"));
  for (const pid_t pid : agent(0).pids_with("RANK=0"))
    EXPECT_THAT(read_file("/proc/" + std::to_string(pid) + "/environ"), Not(HasSubstr("TOKEN")));
  stop_all(0);
}

// It asks those of the same user on this host: the agents, and the drun that has started them.
TEST_F(MadeTokenTest, DrunctlFindsOutItself) {
  const std::string store = begin({"--status-listen", "0"});
  for (const Arguments& where : {Arguments{}, Arguments{"--endpoint", store}}) {
    const Finished status = ask(where + Arguments{"status", name_});
    EXPECT_EQ(status.code, 0) << status.err;
    EXPECT_THAT(status.out, HasSubstr("job " + name_));
    const Finished stacks = ask(where + Arguments{"stacks", "--quick", name_});
    EXPECT_EQ(stacks.code, 0) << stacks.err;
  }
  EXPECT_EQ(ask({"health", name_}).code, 0);
  EXPECT_THAT(ask({"--endpoint", store, "jobs"}).out, HasSubstr(name_));
  EXPECT_EQ(ask({"--endpoint", store, "set", "key", "value"}).code, 0);
  EXPECT_EQ(ask({"--endpoint", store, "get", "key"}).out, "value");
  const Finished key = ask({"page-key", name_});
  EXPECT_EQ(key.out.size(), 65U) << key.err;
  // Lines of the store come by way of the starter: those of before have come when this one has.
  EXPECT_EQ(ask({"--endpoint", store, "jobs"}, kOther).code, 125);
  ASSERT_TRUE(agent(0).wait_for_err("it has another token")) << agent(0).err();
  const std::string lines = agent(0).err();
  const auto first = lines.find("dropped");
  EXPECT_EQ(lines.find("dropped", first + 1), lines.npos) << "drunctl had the key at once" << lines;
  const Finished none = ask({"page-key", "another-name"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("there is no token"));
  stop_all(0);
}

TEST_F(MadeTokenTest, ThereIsNoneIfTheUserSaysSoOrSaysWhereTheyMeet) {
  const ReservedPort port;
  for (const Arguments& how :
       {Arguments{"--token-file", "none"}, Arguments{"--rdzv-endpoint", port.endpoint()}}) {
    std::string store = begin(how);
    if (store.empty()) store = port.endpoint();
    const Finished status = ask({"--endpoint", store, "status"}, kToken);
    EXPECT_EQ(status.code, 125);
    EXPECT_THAT(status.err, HasSubstr("it speaks without a token"));
    stop_all(0);
    agents_.clear();
  }
}

TEST_F(MadeTokenTest, TheUsersOwnIsHandedOver) {
  const std::string store = begin({}, with_token(kToken));
  const Finished status = ask({"--endpoint", store, "status"}, kToken);
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(ask({"--endpoint", store, "status"}).err,
              HasSubstr("it asks for a token: " + kAdvice + "; one that drun has made"));
  EXPECT_EQ(ask({"page-key", name_}).code, 1) << "no agent gives away what the user knows";
  stop_all(0);
}

TEST_F(MadeTokenTest, AJobThatNobodyStartsIsOverAtOnce) {
  DrunProcess starter(Arguments{"-H", "a,b", "--launcher", "no-such-launcher {host}", "true"});
  EXPECT_EQ(starter.finish().code, 125);
  EXPECT_THAT(starter.err(), HasSubstr("nothing was started"));
}

// One host of two lacks OpenSSL.
TEST_F(MadeTokenTest, AHostWithoutOpenSslIsNamedOnlyIfTheUserWantsAToken) {
  const TempDir folder;
  folder.write("libssl.so.3", "no library");
  const std::string lacks = folder.write(
      "lacks",
      "#!/bin/sh\n[ $1 = 127.0.0.2 ] || export LD_LIBRARY_PATH=" + folder.path().string() +
          "\nshift\nexec \"$@\"\n",
      true);
  const std::string store = begin({"--launcher", lacks + " {host}"});
  EXPECT_THAT(agent(0).err(), HasSubstr("no token is made for the job: 127.0.0.3: "));
  EXPECT_THAT(ask({"--endpoint", store, "status"}, kToken).err,
              HasSubstr("it speaks without a token"));
  stop_all(0);
  DrunProcess refused(
      Arguments{"-H", "127.0.0.2,127.0.0.3", "--launcher", lacks + " {host}", "true"},
      with_token(kToken));
  EXPECT_EQ(refused.finish().code, 125);
  EXPECT_THAT(refused.err(), HasSubstr("drun: error: 127.0.0.3: "));
  EXPECT_THAT(refused.err(), HasSubstr("libssl3"));
}

TEST_F(TokenTest, AShortTokenIsWarnedOf) {
  DrunProcess agent({"true"}, with_token("only-16-letters-"));
  EXPECT_EQ(agent.finish().code, 0);
  EXPECT_THAT(agent.err(), HasSubstr("warning: the token has fewer than 32 characters"));
}

}  // namespace
}  // namespace drun::test
