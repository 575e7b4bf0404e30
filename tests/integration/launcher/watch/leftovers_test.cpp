// What workers leave in shared memory, with real files and processes that have them.
#include "launcher/watch/leftovers.hpp"

#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"
#include "support/file_holder.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::Has;
using drun::test::Holder;
using drun::test::kPatience;
using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

class LeftoversTest : public testing::Test {
 protected:
  LeftoversTest() {
    std::string name = "/dev/shm/drun-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    folder_ = name;
  }
  ~LeftoversTest() override {
    if (leftovers_) leftovers_->cancel();
    io_.restart();
    io_.run();
    std::filesystem::remove_all(folder_);
  }
  void watch(const std::vector<std::string>& keep = {}) {
    leftovers_ = std::make_unique<Leftovers>(
        io_, keep, false, rig_.files,
        Leftovers::Calls{[this]() -> const WorkerGroup& { return rig_.group; }, status_,
                         [this] { ++answers_; }},
        folder_);
  }
  std::string make(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << std::string(8192, 'x');
    return folder_ + "/" + name;
  }
  [[nodiscard]] bool is_there(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }
  // A round is about to begin; whether it waits.
  bool begin() {
    return leftovers_->begin(Clock::now(), [this] { ++over_; }).has_value();
  }
  // A round whose first worker has this file, seen after another has failed.
  void run(const std::string& file) {
    EXPECT_FALSE(begin());
    worker_.emplace(make(file), Has::Open);
    WorkerNews news;
    news.group = rig_.start(place_of(0, 1), {worker_->pid(), 1 << 30});
    leftovers_->on_workers(news);
    WorkerNews failed;
    failed.group.failure.emplace();
    leftovers_->on_workers(failed);
  }
  // Its workers are gone.
  void stop() {
    worker_.reset();
    WorkerNews news;
    news.group = rig_.stop();
    leftovers_->on_workers(news);
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }

  // As drun's own, from before it is taken over.
  struct InfoLog {
    InfoLog() { log::configure("drun", log::Level::Info); }
    ~InfoLog() { log::configure("drun", log::Level::Warning); }
  };

  const InfoLog log_;
  std::string folder_;
  asio::io_context io_{1};
  test::GroupRig rig_;
  std::vector<std::string> said_;
  StatusReporter status_{{false, [this](std::string text) { said_.push_back(std::move(text)); },
                          [](const std::string&) {}, [] { return std::size_t{0}; }},
                         nullptr,
                         true};
  std::optional<Holder> worker_;
  int answers_ = 0;  // of the thread
  int over_ = 0;
  std::unique_ptr<Leftovers> leftovers_;
};

TEST_F(LeftoversTest, TheNextRoundWaitsUntilTheLastIsSwept) {
  watch();
  const std::string before = make("nccl-Ab12Cd");
  run("psm_0a1b2c3d");
  ASSERT_TRUE(until([this] { return answers_ >= 1; }));
  stop();
  EXPECT_TRUE(begin());
  ASSERT_TRUE(until([this] { return over_ >= 1; }));
  EXPECT_EQ(over_, 1);
  EXPECT_FALSE(is_there("psm_0a1b2c3d"));
  EXPECT_TRUE(is_there("nccl-Ab12Cd")) << "it was there before the workers";
  EXPECT_THAT(said_, ElementsAre("drun: removed 1 file (8192 B) that the workers left in "
                                 "/dev/shm: psm_0a1b2c3d\n"));
  EXPECT_FALSE(begin()) << "there is nothing left to wait for";
}

TEST_F(LeftoversTest, AtTheEndTheSweepIsWaitedForWithoutALoop) {
  watch();
  run("psm_0a1b2c3d");
  ASSERT_TRUE(until([this] { return answers_ >= 1; }));
  stop();
  leftovers_->cancel();
  leftovers_->finish();
  EXPECT_FALSE(is_there("psm_0a1b2c3d"));
}

TEST_F(LeftoversTest, WhatTheUserKeepsStays) {
  for (const char* pattern : {"*", "psm_*"}) {
    watch({pattern});
    run("psm_0a1b2c3d");
    answers_ = 0;
    const bool looks = std::string(pattern) != "*";
    ASSERT_TRUE(!looks || until([this] { return answers_ >= 1; }));
    stop();
    EXPECT_FALSE(begin()) << pattern;
    leftovers_->cancel();
    leftovers_->finish();
    EXPECT_TRUE(is_there("psm_0a1b2c3d")) << pattern;
    std::filesystem::remove(folder_ + "/psm_0a1b2c3d");
  }
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LeftoversTest, WorkersThatSucceededMayHaveMeantIt) {
  watch();
  run("psm_0a1b2c3d");
  ASSERT_TRUE(until([this] { return answers_ >= 1; }));
  worker_.reset();
  for (const std::size_t local_rank : {0U, 1U}) {
    WorkerNews news;
    news.group = rig_.end(local_rank);
    leftovers_->on_workers(news);
  }
  WorkerNews swept;
  swept.swept = true;
  leftovers_->on_workers(swept);
  EXPECT_FALSE(begin());
  leftovers_->cancel();
  leftovers_->finish();
  EXPECT_TRUE(is_there("psm_0a1b2c3d"));
}

}  // namespace
}  // namespace drun::launcher
