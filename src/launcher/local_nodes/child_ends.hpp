// What the ends of this process's children mean for the others, and for drun's exit code.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/process/exit_status.hpp"

namespace drun::launcher {

class ChildEnds {
 public:
  ChildEnds() = default;
  ChildEnds(const ChildEnds&) = delete;
  ChildEnds& operator=(const ChildEnds&) = delete;
  virtual ~ChildEnds() = default;

  struct Consequence {
    std::string line;       // for the user; empty: nothing is to be said
    bool stop_all = false;  // those that are left
    int stop_one = -1;      // this child
    std::string why{};      // those that are left are stopped, beside this end
  };
  // One more has ended. `unannounced`: the others cannot know that it has.
  [[nodiscard]] virtual Consequence on_end(std::size_t child, const process::ExitStatus& status,
                                           bool unannounced) = 0;
  // drun was told to stop.
  virtual void on_stop() = 0;
  // Those that are left were killed for this signal, which was one request too many.
  virtual void on_killed(int signal) = 0;

  // "an agent"
  [[nodiscard]] virtual std::string name(std::size_t child) const = 0;
  [[nodiscard]] virtual int left() const = 0;
  [[nodiscard]] virtual bool killed() const = 0;
  [[nodiscard]] virtual int exit_code() const = 0;
};

}  // namespace drun::launcher
