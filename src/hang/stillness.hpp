// Whether a rank has made progress between two looks at it. Pure: this is the rule by which a hang
// is told from work, and its cases are in a table of its test.
#pragma once

#include <chrono>
#include <string>

#include "hang/process_look.hpp"

namespace drun::hang {

enum class Activity {
  MakesProgress,  // something came of it: bytes were moved, processes began or ended
  NobodyKnows,    // it was busy, and nothing came of it that the kernel would tell of
  Waits           // every thread of it slept, and did next to nothing when it woke
};

struct Finding {
  Activity activity = Activity::NobodyKnows;
  std::string why;  // "wrote 12 bytes", "thread 4711 used the CPU": for people and tests
};

// `elapsed`: between the two.
[[nodiscard]] Finding compare(const RankLook& before, const RankLook& now,
                              std::chrono::milliseconds elapsed);

// Whether all that is known of its processes says that it waits: then its files are worth a look.
[[nodiscard]] bool seems_still(const RankLook& before, const RankLook& now,
                               std::chrono::milliseconds elapsed);

// Whether the process is too busy for its threads to be worth a look: `used_ms` of CPU time since
// the look before.
[[nodiscard]] bool is_busy(std::uint64_t used_ms, std::chrono::milliseconds elapsed);

}  // namespace drun::hang
