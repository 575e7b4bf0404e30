// The workers' output on its way to drun's own stdout and stderr and to log files. Runs a thread of
// its own, so that a reader that stalls never holds up the agent. Whole lines only, order kept per
// stream, bytes unchanged.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drun/base/file_descriptor.hpp"

namespace drun::launcher {

// What one worker's streams are called and where they go.
struct StreamLabel {
  std::uint32_t worker = 0;  // process::WorkerId
  int rank = 0;
  int local_rank = 0;
  int round = 0;
  int restart_count = 0;
  std::string role;
};

struct OutputOptions {
  bool terminal = false;        // drun's own stdout is a terminal: workers get pseudo-terminals
  std::size_t tail_lines = 20;  // of each worker's stderr, kept for the failure report
};

// What a worker is started with.
struct WorkerStreams {
  FileDescriptor standard_output;
  FileDescriptor standard_error;
};

class Output {
 public:
  explicit Output(OutputOptions options);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();  // delivers what was read, within a second where the reader has stalled

  // Throws std::system_error when there are no descriptors left.
  [[nodiscard]] WorkerStreams open(const StreamLabel& label);

  // Blocks at most `limit` until everything that the worker has written so far is read; then its
  // last stderr lines.
  [[nodiscard]] std::vector<std::string> tail(std::uint32_t worker,
                                              std::chrono::milliseconds limit);

  // All workers are gone: read what is left of their streams (bounded by `limit`), write it, forget
  // them.
  void drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::launcher
