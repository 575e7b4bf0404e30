// torchrun's error file: what a worker that uses torch's @record (or writes such a file itself)
// says about its failure. Read with care: the worker may have written anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::launcher {

struct WorkerError {
  std::string message;                  // "ValueError: bad value 42"; may have several lines
  std::string traceback;                // may be empty
  std::optional<std::int64_t> time_ms;  // Unix milliseconds, by the worker's own account

  // What to show: the traceback, with the message added if it is not in there.
  [[nodiscard]] std::string text() const;
  bool operator==(const WorkerError&) const = default;
};

// Both forms: {"message": {"message": ..., "extraInfo": {"py_callstack": ..., "timestamp": ...}}}
// and {"message": "text", "timestamp": ...}. Anything else is quoted in `message`, shortened and
// harmless to print; nullopt only for nothing at all. Pure.
[[nodiscard]] std::optional<WorkerError> parse_error_file(std::string_view bytes);

// nullopt when there is no such file or it is empty. Reads at most 1 MiB; never waits, whatever
// the path leads to.
[[nodiscard]] std::optional<WorkerError> read_error_file(const std::string& path);

// For a launcher above drun: writes the file's content to `to` (drun's own TORCHELASTIC_ERROR_FILE)
// with the worker's exit code added, as torchrun does. A failure names the path.
[[nodiscard]] Status copy_error_file(const std::string& from, const std::string& to, int exit_code);

}  // namespace drun::launcher
