// What drunctl status and history show of jobs, and the exit code that follows from it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/drunctl.hpp"
#include "drun/base/endpoint.hpp"
#include "jobs/job_view.hpp"
#include "status/agent_status.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::ctl {

// What is seen of a store's jobs: text, and the exit code, of several the highest.
struct View {
  std::string text;
  int code = kOk;
  bool empty = true;
  bool ended = true;  // all of them
};

// What was asked for beside the documents.
struct Asides {
  jobs::LastWords words;
  // Of the job: what its ranks on this host have used, and what the agents here know of
  // collectives.
  std::vector<jobs::NodeUsage> usage;
  std::string collective;
};

// How it is shown, beside the options.
struct Shown {
  bool on_terminal = false;
  std::int64_t now_ms = 0;  // of the wall clock
};

[[nodiscard]] int code_of(jobs::JobState state);
[[nodiscard]] int code_of(const status::AgentStatus& status);

[[nodiscard]] View view_of(const jobs::Documents& documents, const CtlOptions& options,
                           const Shown& shown, const Asides& asides = {});
// Of a job whose documents cannot be read: what its agent says of itself.
[[nodiscard]] View view_of(const status::AgentStatus& agent, const CtlOptions& options,
                           const Shown& shown);

// "store 10.0.0.1:29400: 12 keys, 3 sessions, 5 connections, 14382 bytes"
[[nodiscard]] std::string load_line(const store::control::Counters& counters,
                                    const Endpoint& place);

// Of what an agent says, "node0:29400,node1:29400"; empty: no store of drun's is there, as with
// etcd.
[[nodiscard]] std::vector<Endpoint> places_of(std::string_view meeting_place);

}  // namespace drun::ctl
