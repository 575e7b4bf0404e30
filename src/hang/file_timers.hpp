// The timers of torch.distributed.elastic.timer: a program says by when a part of its work must be
// done, in lines of JSON. Pure: the lines come in as an argument, and so does time.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drun::hang {

inline constexpr std::string_view kTimerVariable = "TORCHELASTIC_TIMER_FILE";

class FileTimers {
 public:
  // In seconds since 1970, as torch counts.
  using UnixTime = double;

  struct Expired {
    pid_t pid = 0;
    std::string scope;  // the program's name of that part, printable
    int signal = 0;     // that the process is to get
    bool operator==(const Expired&) const = default;
  };

  // What came, in pieces as they come. A line that is no request is passed over, and so are new
  // timers when there are too many.
  void take(std::string_view bytes);
  // Whose time is over, each once, and its other timers with it; the first for each process that
  // wants a signal. Those that want none are forgotten.
  [[nodiscard]] std::vector<Expired> take_expired(UnixTime now);
  [[nodiscard]] std::optional<UnixTime> next() const;
  // The workers are gone.
  void clear();

 private:
  struct Timer {
    UnixTime expires = 0;
    int signal = 0;
  };

  void take_line(std::string_view line);

  std::string rest_;  // of a line that has not ended
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
};

}  // namespace drun::hang
