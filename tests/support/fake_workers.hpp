// The machine below a group of workers, faked: what was asked of it is written down, and what the
// workers left behind is what the test says.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/process/guardian.hpp"

namespace drun::launcher::test {

class FakeRunner : public process::ProcessRunner {
 public:
  void share_environment(const std::vector<std::string>& environment) override {
    shared = environment;
  }
  void spawn(process::SpawnRequest request) override {
    calls.push_back("spawn " + std::to_string(request.id));
    requests.push_back(std::move(request));
  }
  void signal_all(int signal) override {
    calls.push_back("signal " + process::signal_name(signal));
  }
  void signal(process::WorkerId worker, int signal) override {
    calls.push_back("signal " + process::signal_name(signal) + " to " + std::to_string(worker));
  }
  bool acts_by_default(pid_t pid, int /*signal*/) const override {
    return unprepared.contains(pid);
  }
  void stop(int signal, std::chrono::milliseconds grace) override {
    calls.push_back("stop " + process::signal_name(signal) + " " + std::to_string(grace.count()));
  }
  void remove_at_end(const std::string& folder) override { calls.push_back("remove " + folder); }
  int fd() const override { return reported_.get(); }
  std::vector<process::GuardianEvent> receive() override {
    std::uint64_t count = 0;
    (void)!::read(reported_.get(), &count, sizeof count);
    return std::exchange(events_, {});
  }
  void give_up() override { calls.push_back("give up"); }
  void renew_lease(std::chrono::steady_clock::time_point /*since*/,
                   std::chrono::milliseconds length) override {
    calls.push_back("lease " + std::to_string(length.count()));
  }
  void wake() override { calls.push_back("wake"); }
  void say_at_end(const process::Farewell& farewell) override {
    calls.push_back("say to " + farewell.address);
  }
  bool suspend(int signal) override {
    calls.push_back("suspend " + process::signal_name(signal));
    return true;
  }

  // What the next receive() gives; fd() tells.
  void report(process::GuardianEvent event) {
    constexpr std::uint64_t kOne = 1;
    events_.push_back(std::move(event));
    (void)!::write(reported_.get(), &kOne, sizeof kOne);
  }

  // What was asked since the last call: "spawn 1, spawn 2".
  [[nodiscard]] std::string take_calls() {
    std::string result;
    for (const auto& call : std::exchange(calls, {}))
      result += (result.empty() ? "" : ", ") + call;
    return result;
  }

  std::vector<std::string> shared;
  std::vector<process::SpawnRequest> requests;
  std::vector<std::string> calls;
  std::set<pid_t> unprepared;  // these would die of a signal

 private:
  FileDescriptor reported_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<process::GuardianEvent> events_;
};

// Work is done at once, unless the file system hangs.
class FakeFiles final : public FileWork {
 public:
  void run(std::chrono::milliseconds /*limit*/, std::function<void()> work, Done done) override {
    if (hangs) {
      waiting.emplace_back(std::move(work), std::move(done));
    } else {
      done(attempt(work));
    }
  }
  // It works again.
  void answer() {
    hangs = false;
    for (const auto& [work, done] : std::exchange(waiting, {}))
      done(attempt(work));
  }
  // What was asked has hung for its limit.
  void give_up() {
    for (const auto& [work, done] : std::exchange(waiting, {}))
      done(Error(std::make_error_code(std::errc::timed_out), "open /nfs/x: no answer for 30 s"));
  }

  bool hangs = false;
  std::vector<std::pair<std::function<void()>, Done>> waiting;
};

class FakeOutput final : public WorkerOutput {
 public:
  MakeFiles make_files() override {
    return [this](const StreamLabel& label) {
      labels.push_back(label);
      if (open_error != 0)
        throw std::system_error(open_error, std::generic_category(), "create folder /logs");
      WorkerFiles files;
      if (const auto found = error_files.find(label.local_rank); found != error_files.end())
        files.error_file = found->second;
      files.private_folder = folder;
      return files;
    };
  }
  WorkerStreams open(const StreamLabel& /*label*/, WorkerFiles /*files*/) override {
    if (pipe_error != 0)
      throw std::system_error(pipe_error, std::generic_category(), "make a pipe");
    return {};
  }
  std::string log_file(process::WorkerId worker) const override {
    return "/logs/" + std::to_string(worker);
  }
  std::vector<std::string> tail(process::WorkerId worker,
                                std::chrono::milliseconds /*limit*/) override {
    const auto found = tails.find(worker);
    return found == tails.end() ? std::vector<std::string>() : found->second;
  }
  std::optional<Output::Time> last_output(process::WorkerId worker) const override {
    const auto found = last_outputs.find(worker);
    return found == last_outputs.end() ? std::nullopt : std::optional(found->second);
  }
  bool drain(std::chrono::milliseconds /*limit*/) override {
    ++drained;
    return true;
  }

  int open_error = 0;  // errno of make_files(); 0: they can be made
  int pipe_error = 0;  // errno of open()
  std::string folder;
  std::map<int, std::string> error_files;  // by local rank
  std::map<process::WorkerId, std::vector<std::string>> tails;
  std::map<process::WorkerId, Output::Time> last_outputs;
  std::vector<StreamLabel> labels;
  int drained = 0;
};

}  // namespace drun::launcher::test
