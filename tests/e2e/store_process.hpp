// drun-store as a user starts it.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {

class Store {
 public:
  explicit Store(const std::string& port, const Arguments& more = {}) {
    Launch launch;
    launch.argv =
        Arguments{places::program("drun-store"), "--bind", "127.0.0.1", "--port", port} + more;
    process_ = std::make_unique<DrunProcess>(std::move(launch));
    EXPECT_TRUE(process_->wait_for_out("\n")) << process_->err();
  }
  void signal(int number) { process_->signal(number); }
  void stop() {
    process_->signal(SIGTERM);
    EXPECT_TRUE(process_->wait());
  }

 private:
  std::unique_ptr<DrunProcess> process_;
};

}  // namespace drun::test
