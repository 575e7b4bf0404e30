// The agents of one job, which a test starts one after the other.
#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {

// Workers that say their round, rank, world and restart count, and stay.
inline Arguments telling_workers() {
  return {"sh", "-c",
          "echo round $DRUN_ROUND rank $RANK of $WORLD_SIZE "
          "restarts $TORCHELASTIC_RESTART_COUNT.; exec sleep 1000"};
}

class AgentsOfAJob : public testing::Test {
 protected:
  void start(const Arguments& arguments) {
    agents_.push_back(std::make_unique<DrunProcess>(arguments));
  }
  DrunProcess& agent(std::size_t number) { return *agents_[number]; }
  [[nodiscard]] bool says(std::size_t number, const std::string& text) {
    return agent(number).wait_for_out(text);
  }
  // Tells one to stop the job; all that still run must stop with it.
  void stop_all(std::size_t number) {
    agent(number).signal(SIGINT);
    for (auto& each : agents_) {
      if (!each->running()) continue;
      const Finished finished = each->finish();
      EXPECT_EQ(finished.code, 128 + SIGINT) << finished.err;
      EXPECT_THAT(finished.survivors, testing::IsEmpty());
    }
  }

  std::vector<std::unique_ptr<DrunProcess>> agents_;
};

}  // namespace drun::test
