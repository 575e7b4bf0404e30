// Dumps of PyTorch's flight recorder, which keeps the last collectives of each rank. A rank whose
// recorder is on reads a pipe, and writes a file when somebody has written to it.
// Source: PyTorch, ProcessGroupNCCL.cpp (DumpPipe) and the documentation of its flight recorder.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace drun::hang {

struct FlightRecorder {
  std::string pipe;  // behind it comes the rank, then ".pipe"
  std::string
      dump;  // behind it comes the rank; empty: PyTorch's own place, which versions differ in

  bool operator==(const FlightRecorder&) const = default;
};

// As the workers have it in their environment, "NAME=value"; nullopt: no pipe is asked for.
[[nodiscard]] std::optional<FlightRecorder> flight_recorder_of(
    const std::vector<std::string>& environment);

struct Dumps {
  std::vector<int> asked;          // a rank that reads no pipe is not
  std::vector<std::string> files;  // that have been written
};

// Asks these ranks of this machine for their dumps, and waits until they are written, `limit` at
// the most. For a thread of its own.
[[nodiscard]] Dumps ask_for_dumps(const FlightRecorder& recorder, const std::vector<int>& ranks,
                                  std::chrono::milliseconds limit);

// "the flight recorder has written /tmp/trace_0 and /tmp/trace_1"; empty: nobody was asked. Pure.
[[nodiscard]] std::string dumps_text(const Dumps& dumps);

}  // namespace drun::hang
