// What an agent's workers need of the machine: processes and their streams. In production that is
// the guardian and the output; tests put fakes in their place.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/preparation.hpp"

namespace drun::launcher {

using process::ProcessRunner;

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
