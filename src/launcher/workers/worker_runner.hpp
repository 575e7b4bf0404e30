// What an agent's workers need of the machine: processes and their streams. In production that is
// the guardian and the output; tests put fakes in their place.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/output/output.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/process/suspension.hpp"
#include "launcher/workers/preparation.hpp"

namespace drun::launcher {

// As process::Guardian, which has the contracts.
class ProcessRunner {
 public:
  ProcessRunner() = default;
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;
  virtual ~ProcessRunner() = default;

  virtual void share_environment(const std::vector<std::string>& environment) = 0;
  virtual void spawn(process::SpawnRequest request) = 0;
  virtual void signal_all(int signal) = 0;
  virtual void signal(process::WorkerId worker, int signal) = 0;
  // As process::acts_by_default().
  [[nodiscard]] virtual bool acts_by_default(pid_t pid, int signal) const = 0;
  virtual void stop(int signal, std::chrono::milliseconds grace) = 0;
  virtual void remove_at_end(const std::string& folder) = 0;

  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual std::vector<process::GuardianEvent> receive() = 0;
  virtual void give_up() = 0;
  virtual void renew_lease(std::chrono::steady_clock::time_point since,
                           std::chrono::milliseconds length) = 0;
  virtual void say_at_end(const process::Farewell& farewell) = 0;
  // As process::suspend_with().
  virtual bool suspend(int signal) = 0;
};

// As Output, which has the contracts.
class WorkerOutput {
 public:
  WorkerOutput() = default;
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;
  virtual ~WorkerOutput() = default;

  // For another thread; it may be called when the output is gone.
  [[nodiscard]] virtual MakeFiles files() = 0;
  [[nodiscard]] virtual WorkerStreams open(const StreamLabel& label, WorkerFiles files) = 0;
  [[nodiscard]] virtual std::string log_file(process::WorkerId worker) const = 0;
  [[nodiscard]] virtual std::vector<std::string> tail(process::WorkerId worker,
                                                      std::chrono::milliseconds limit) = 0;
  [[nodiscard]] virtual std::optional<Output::Time> last_output(process::WorkerId worker) const = 0;
  virtual void drain(std::chrono::milliseconds limit) = 0;
};

class GuardianRunner final : public ProcessRunner {
 public:
  explicit GuardianRunner(process::Guardian guardian) : guardian_(std::move(guardian)) {}

  void leave_folders() { guardian_.leave_folders(); }
  void end() { guardian_.end(); }

  void share_environment(const std::vector<std::string>& environment) override {
    guardian_.share_environment(environment);
  }
  void spawn(process::SpawnRequest request) override { guardian_.spawn(std::move(request)); }
  void signal_all(int signal) override { guardian_.signal_all(signal); }
  void signal(process::WorkerId worker, int signal) override { guardian_.signal(worker, signal); }
  bool acts_by_default(pid_t pid, int signal) const override {
    return process::acts_by_default(pid, signal);
  }
  void stop(int signal, std::chrono::milliseconds grace) override { guardian_.stop(signal, grace); }
  void remove_at_end(const std::string& folder) override { guardian_.remove_at_end(folder); }
  int fd() const override { return guardian_.fd(); }
  std::vector<process::GuardianEvent> receive() override { return guardian_.receive(); }
  void give_up() override { guardian_.give_up(); }
  void renew_lease(std::chrono::steady_clock::time_point since,
                   std::chrono::milliseconds length) override {
    guardian_.renew_lease(since, length);
  }
  void say_at_end(const process::Farewell& farewell) override { guardian_.say_at_end(farewell); }
  bool suspend(int signal) override { return process::suspend_with(guardian_, signal); }

 private:
  process::Guardian guardian_;
};

class RealOutput final : public WorkerOutput {
 public:
  explicit RealOutput(Output& output) : output_(output) {}

  MakeFiles files() override {
    return [files = output_.files()](const StreamLabel& label) { return files->open(label); };
  }
  WorkerStreams open(const StreamLabel& label, WorkerFiles files) override {
    return output_.open(label, std::move(files));
  }
  std::string log_file(process::WorkerId worker) const override { return output_.log_file(worker); }
  std::vector<std::string> tail(process::WorkerId worker,
                                std::chrono::milliseconds limit) override {
    return output_.tail(worker, limit);
  }
  std::optional<Output::Time> last_output(process::WorkerId worker) const override {
    return output_.last_output(worker);
  }
  void drain(std::chrono::milliseconds limit) override { (void)output_.drain(limit); }

 private:
  Output& output_;
};

}  // namespace drun::launcher
