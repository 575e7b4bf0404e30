#include "jobs/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace drun::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const AgentMetrics kAgent{"train", "node0", "running", true, 2};

NodeView node(int rank, const std::string& state) {
  NodeView result;
  result.host = "node" + std::to_string(rank);
  result.state = state;
  result.group_rank = rank;
  result.ranks = NumberRange{2 * rank, 2 * rank + 1};
  return result;
}

JobView running_job() {
  JobView job;
  job.id = "train";
  job.state = JobState::Running;
  job.nnodes = "2:4";
  job.max_restarts = 3;
  job.round.number = 2;
  job.round.restart_count = 1;
  job.round.nodes = 3;
  job.round.world_size = 6;
  job.nodes = {node(0, "running"), node(1, "running"), node(2, "succeeded")};
  job.nodes.push_back(node(9, "spare"));
  job.nodes.back().ranks.reset();
  return job;
}

TEST(MetricsTest, BothFormatsAreAsTheyWere) {
  const JobView job = running_job();
  test::expect_golden("metrics/prometheus.txt",
                      metrics_text(kAgent, &job, true, MetricsFormat::Prometheus));
  test::expect_golden("metrics/openmetrics.txt",
                      metrics_text(kAgent, &job, true, MetricsFormat::OpenMetrics));
}

TEST(MetricsTest, RanksHaveSeriesOnlyIfAskedFor) {
  JobView job = running_job();
  EXPECT_THAT(metrics_text(kAgent, &job, false, MetricsFormat::Prometheus),
              Not(HasSubstr("drun_rank")));
  job.outcome.emplace().exit_code = 7;
  EXPECT_THAT(metrics_text(kAgent, &job, false, MetricsFormat::Prometheus),
              HasSubstr("\ndrun_job_exit_code{run_id=\"train\"} 7\n"));
}

TEST(MetricsTest, NodesThatAreNotThereCount) {
  JobView job = running_job();
  job.absent = {{"", "missing", "", 3, NumberRange{6, 7}}, {"node4", "lost", "", {}, {}}};
  const std::string text = metrics_text(kAgent, &job, false, MetricsFormat::Prometheus);
  for (const char* line :
       {"nodes{run_id=\"train\",state=\"missing\"} 1",
        "ranks{run_id=\"train\",state=\"missing\"} 2", "nodes{run_id=\"train\",state=\"lost\"} 1",
        "nodes{run_id=\"train\",state=\"set-aside\"} 0"})
    EXPECT_THAT(text, HasSubstr(std::string("\ndrun_job_") + line + "\n"));
}

TEST(MetricsTest, AnAgentAloneTellsOnlyOfItself) {
  const std::string text = metrics_text(kAgent, nullptr, true, MetricsFormat::Prometheus);
  EXPECT_THAT(text, Not(HasSubstr("drun_job")));
  EXPECT_THAT(text, HasSubstr("drun_agent_ready{run_id=\"train\"} 1\n"));
}

TEST(MetricsTest, NoTextOfOthersBreaksALine) {
  AgentMetrics agent = kAgent;
  agent.run_id = "a\"b\\c\nd\x1b\xff";
  EXPECT_THAT(metrics_text(agent, nullptr, false, MetricsFormat::Prometheus),
              HasSubstr("drun_agent_ready{run_id=\"a\\\"b\\\\c\\\\nd\\\\x1b\\\\xff\"} 1\n"));
}

}  // namespace
}  // namespace drun::jobs
