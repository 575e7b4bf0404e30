// What a job's documents and an agent say, as metrics for Prometheus. Pure.
#pragma once

#include <string>
#include <vector>

#include "jobs/job_view.hpp"

namespace drun::jobs {

enum class MetricsFormat {
  Prometheus,  // text/plain; version=0.0.4
  OpenMetrics  // application/openmetrics-text; version=1.0.0
};
// The header Content-Type.
[[nodiscard]] std::string content_type(MetricsFormat format);

// Of the agent that gives the metrics.
struct AgentMetrics {
  std::string run_id;
  std::string host;
  std::string phase;   // "running"
  bool ready = false;  // all of its workers run
  int workers = 0;     // of its node
};

// `job`: null if this agent does not tell of the whole job, or knows nothing of it. `ranks`: with
// series for each rank, of which a job may have tens of thousands. Text of others is made safe.
[[nodiscard]] std::string metrics_text(const AgentMetrics& agent, const JobView* job, bool ranks,
                                       MetricsFormat format);

}  // namespace drun::jobs
