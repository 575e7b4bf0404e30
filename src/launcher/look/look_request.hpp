// What an agent asks of the process that takes stacks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "stacks/job_look.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

struct LookRequest {
  struct Worker {
    int rank = 0;
    pid_t pid = 0;                                     // 0: it does not run
    std::optional<std::chrono::milliseconds> silence;  // since its last output
    bool never_printed = false;                        // anything; then there is no silence
  };
  int round = 0;  // of these workers; the process need not know it
  stacks::NodeRanks node;
  std::vector<Worker> workers;
  bool unwind = true;                     // else only what /proc says
  std::chrono::milliseconds each{5'000};  // for one worker
  std::chrono::milliseconds all{10'000};
  std::size_t longest = stacks::kLongestAnswer;
};

[[nodiscard]] std::string encode(const LookRequest& request);
[[nodiscard]] Result<LookRequest> decode_request(std::string_view text);

// One look on its way between two processes: a line of JSON without its end.
[[nodiscard]] std::string encode(const stacks::Sample& sample);
[[nodiscard]] std::optional<stacks::Sample> decode_sample(std::string_view line);

}  // namespace drun::launcher
