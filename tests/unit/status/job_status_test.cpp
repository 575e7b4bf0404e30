#include "drun/status/job_status.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::status {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// With something in each member.
JobStatus full() {
  JobStatus job;
  job.id = "train";
  job.state = JobState::Running;
  job.nnodes = "2:8";
  job.round = {2, "running", 2, 8, "two of two", "node7 was lost", 1'795'876'209'000, true};
  job.restarts = 1;
  job.max_restarts = 3;
  job.losses = 2;
  job.nodes = {{"node0",
                "10.0.0.1",
                "default",
                "failed",
                "rank 1",
                true,
                true,
                0,
                RankRange{0, 3},
                {{1, 1}, {3, 3}},
                120,
                5'000,
                "iz78yn"},
               {"node1", "10.0.0.2", "big", "spare", "", false, false, {}, {}, {}, {}, {}, {}}};
  job.absent = {{"node7", "missing", "its agent is gone", 1, RankRange{4, 7}, "bhmf0o"},
                {"", "lost", "lost in 1 round, and not back", {}, {}, ""}};
  job.steps = {41, 57};
  job.behind = {"node0", 2, 41, 1'795'876'210'000};
  job.collective = "rank 1 has begun 99";
  job.usage = {{0, 12'100, 812'000, 8, 96, 1'830}};
  job.rounds = {{1, 2, 8, 1, 2, 3, 4, "failure", "rank 1 on node1: exit code 7", 1}};
  job.outcome = {7, "rank 1 failed"};
  return job;
}

TEST(JobStatusTest, IsALineOfJson) {
  EXPECT_EQ(
      to_json(full()),
      R"({"id":"train","state":"running","nnodes":"2:8","round":{"number":2,"phase":"running",)"
      R"("nodes":2,"world_size":8,"waiting":"two of two","reason":"node7 was lost",)"
      R"("since_ms":1795876209000,"hung":true},"restarts":1,"max_restarts":3,"losses":2,)"
      R"("nodes":[{"host":"node0","address":"10.0.0.1","role":"default","state":"failed",)"
      R"("note":"rank 1","hosts_store":true,"leads":true,"group_rank":0,"ranks":[0,3],)"
      R"("failed_ranks":[[1,1],[3,3]],"word_age_ms":120,"lease_ms":5000,"node":"iz78yn"},)"
      R"({"host":"node1","address":"10.0.0.2","role":"big","state":"spare","note":"",)"
      R"("hosts_store":false,"leads":false}],)"
      R"("absent":[{"host":"node7","state":"missing","note":"its agent is gone","group_rank":1,)"
      R"("ranks":[4,7],"node":"bhmf0o"},{"host":"","state":"lost","note":"lost in 1 round, and not back"}],)"
      R"("steps":[41,57],"behind":{"host":"node0","rank":2,"step":41,)"
      R"("heartbeat_ms":1795876210000},"collective":"rank 1 has begun 99",)"
      R"("usage":[{"rank":0,"cpu_ms":12100,"peak_kib":812000,"read_kib":8,"written_kib":96,)"
      R"("switches":1830}],"rounds":[{"number":1,"nodes":2,"world_size":8,"waited_ms":1,)"
      R"("began_ms":2,"stopping_ms":3,"ended_ms":4,"cause":"failure",)"
      R"("reason":"rank 1 on node1: exit code 7","restart":1}],)"
      R"("outcome":{"exit_code":7,"text":"rank 1 failed"}})");
}

TEST(JobStatusTest, IsReadAsItIsWritten) {
  EXPECT_EQ(parse_job_status(to_json(full())).value(), full());
  JobStatus least;
  least.id = "new";
  EXPECT_EQ(parse_job_status(to_json(least)).value(), least);
  for (const JobState state : {JobState::Running, JobState::Gathering, JobState::Stopping,
                               JobState::Succeeded, JobState::Failed, JobState::Abandoned}) {
    least.state = state;
    EXPECT_EQ(parse_job_status(to_json(least)).value().state, state) << name_of(state);
  }
}

TEST(JobStatusTest, WhatIsKnownOfGpusIsToldAndRead) {
  JobStatus job = full();
  EXPECT_THAT(to_json(job), Not(HasSubstr("gpu")));
  job.usage.front().gpu_peak_kib = 4'096;
  EXPECT_THAT(to_json(job), HasSubstr(R"("switches":1830,"gpu_peak_kib":4096}],)"));
  job.usage.front().gpu_percent = 0;
  EXPECT_THAT(to_json(job), HasSubstr(R"(,"gpu_peak_kib":4096,"gpu_percent":0}],)"));
  EXPECT_EQ(parse_job_status(to_json(job)).value(), job);
}

TEST(JobStatusTest, WhatIsNotSoIsLeftOut) {
  const std::string line = to_json(JobStatus());
  for (const char* member : {"steps", "behind", "collective", "usage", "outcome"})
    EXPECT_THAT(line, Not(HasSubstr(member)));
  EXPECT_THAT(line, HasSubstr(R"("nodes":[],"absent":[],"rounds":[])"));
}

TEST(JobStatusTest, NothingInItActsOnATerminal) {
  JobStatus job;
  job.id = "a\x1b[31m\u202e";
  EXPECT_THAT(to_json(job, true), HasSubstr(R"("id":"a\u001b[31m\u202e")"));
}

TEST(JobStatusTest, AHistoryIsSomeOfIt) {
  const std::string line = history_json(full());
  EXPECT_THAT(line, HasSubstr(R"({"id":"train","state":"running","max_restarts":3,"rounds":[{)"));
  const JobStatus read = parse_job_status(line).value();
  EXPECT_EQ(read.rounds, full().rounds);
  EXPECT_EQ(read.outcome, full().outcome);
  EXPECT_TRUE(read.nodes.empty());
}

TEST(JobStatusTest, WhatALaterVersionAddsIsPassedOver) {
  const auto job =
      parse_job_status(R"({"id":"train","colour":"red","round":{"number":2,"mood":[1]}})");
  ASSERT_TRUE(job) << job.error().what();
  EXPECT_EQ(job->round.number, 2);
  EXPECT_EQ(job->state, JobState::Gathering);
}

TEST(JobStatusTest, TheMemberThatMakesNoSenseIsNamed) {
  const auto wrong = [](const std::string& member, const std::string& line) {
    const auto job = parse_job_status(line);
    ASSERT_FALSE(job) << line;
    EXPECT_EQ(job.error().what(), "not the status of a job: its '" + member + "' makes no sense");
  };
  wrong("id", R"({"id":7})");
  wrong("state", R"({"id":"a","state":"merry"})");
  wrong("state", R"({"id":"a","state":1})");
  wrong("restarts", R"({"id":"a","restarts":"1"})");
  wrong("restarts", R"({"id":"a","restarts":4294967296})");
  wrong("restarts", R"({"id":"a","restarts":1.5})");
  wrong("since_ms", R"({"id":"a","round":{"since_ms":18446744073709551615}})");
  wrong("hung", R"({"id":"a","round":{"hung":1}})");
  wrong("round", R"({"id":"a","round":[]})");
  wrong("nodes", R"({"id":"a","nodes":{}})");
  wrong("nodes", R"({"id":"a","nodes":["node0"]})");
  wrong("ranks", R"({"id":"a","nodes":[{"ranks":[0]}]})");
  wrong("ranks", R"({"id":"a","nodes":[{"ranks":[0,"3"]}]})");
  wrong("ranks", R"({"id":"a","nodes":[{"ranks":null}]})");
  wrong("failed_ranks", R"({"id":"a","nodes":[{"failed_ranks":[[0,1],[]]}]})");
  wrong("steps", R"({"id":"a","steps":[1,2,3]})");
  wrong("outcome", R"({"id":"a","outcome":0})");
}

TEST(JobStatusTest, WhatIsNoStatusIsRefused) {
  for (const char* line : {"", "{", "[]", "7", R"({"event":"outcome"})"}) {
    const auto job = parse_job_status(line);
    ASSERT_FALSE(job) << line;
    EXPECT_THAT(job.error().what(), HasSubstr("not the status of a job: ")) << line;
  }
}

}  // namespace
}  // namespace drun::status
