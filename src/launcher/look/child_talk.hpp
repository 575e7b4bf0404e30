// Talks with a program that answers each line with a line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "launcher/look/child_output.hpp"

namespace drun::launcher {

class ChildTalk {
 public:
  // `program` has no input of its own. It is not started before it is asked something.
  explicit ChildTalk(ChildProgram program) : program_(std::move(program)) {}
  ChildTalk(const ChildTalk&) = delete;
  ChildTalk& operator=(const ChildTalk&) = delete;
  ~ChildTalk() { stop(); }

  // Its answer, both with the line's end. For one thread, which may wait, of a process that ignores
  // SIGPIPE and where no other one waits for all children. A program that has ended, or has not
  // answered at the deadline, is stopped: the error says so, now and whenever it is asked again.
  [[nodiscard]] Result<std::string> ask(std::string_view line,
                                        std::chrono::steady_clock::time_point deadline);

  // Any thread: kills it, with its group if it has one of its own, and waits until it is gone,
  // unless the kernel keeps it for longer than kKilled. None is started afterwards.
  void stop();
  // The same, but waits for nothing: stop() does, or who ends this.
  void begin_to_stop();

 private:
  static constexpr std::chrono::milliseconds kKilled{500};

  [[nodiscard]] std::optional<Error> begin();
  static void collect(pid_t child);

  const ChildProgram program_;
  // Of the thread that asks.
  FileDescriptor input_;
  FileDescriptor output_;

  std::mutex mutex_;  // guards what follows
  pid_t child_ = 0;   // 0: there is none
  bool stopped_ = false;
};

}  // namespace drun::launcher
