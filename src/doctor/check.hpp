// What a check found: a verdict, the reason, and what mends it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::doctor {

enum class Verdict { Pass, Warn, Fail };

struct Check {
  Verdict verdict = Verdict::Pass;
  std::string name;    // "disk"
  std::string reason;  // what was seen
  std::string mend;    // what to do; empty if it passes

  bool operator==(const Check&) const = default;
};

[[nodiscard]] Check passed(std::string name, std::string reason);
[[nodiscard]] Check warned(std::string name, std::string reason, std::string mend);
[[nodiscard]] Check failed(std::string name, std::string reason, std::string mend);

[[nodiscard]] Verdict worst(const std::vector<Check>& checks);
[[nodiscard]] std::string_view name_of(Verdict verdict);  // "pass", "warn", "fail"

// A list as JSON, and back; what comes from others is not trusted, and made printable.
[[nodiscard]] std::string encode(const std::vector<Check>& checks);
[[nodiscard]] Result<std::vector<Check>> decode_checks(std::string_view text);

// One line each, the verdicts below one another:
//   warn  disk  3 MB/s to /tmp; look at ...
[[nodiscard]] std::string text_of(const std::vector<Check>& checks);

}  // namespace drun::doctor
