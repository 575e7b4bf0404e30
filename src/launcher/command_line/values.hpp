// What the values of drun's flags mean. Each function throws UsageError naming the flag or variable
// as the user wrote it, the value, and what is allowed. Blanks around a number do not matter. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/values.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// The setting unless it is empty: an empty endpoint is none, as in torchrun.
[[nodiscard]] const cli::Setting* filled(const cli::GivenFlags& flags, std::string_view name);

struct NodeNumbers {
  int least = 1;
  int most = 1;
  int step = 1;
};
// "2", "1:4" or "4:16:4"
[[nodiscard]] NodeNumbers parse_nodes(const cli::Setting& setting);
// "SIGUSR1,USR2,10" -> numbers; SIGKILL and SIGSTOP cannot be caught and are refused.
[[nodiscard]] std::vector<int> parse_signals(const cli::Setting& setting);
// "USR1@120", "SIGTERM@5m"
[[nodiscard]] EndNotice parse_end_notice(const cli::Setting& setting);
[[nodiscard]] int parse_stop_signal(const cli::Setting& setting);
// "1-9,137,SIGKILL"
[[nodiscard]] ExitSet parse_exit_set(const cli::Setting& setting);
// As --exit-code, its name of before, also "root", "first" and "max".
[[nodiscard]] rendezvous::ExitCodePolicy parse_exit_code_policy(const cli::Setting& setting);
// "3" or "0:3,1:1"
[[nodiscard]] StreamChoice parse_streams(const cli::Setting& setting);
// "0,2,5": not negative
[[nodiscard]] std::vector<int> parse_ranks(const cli::Setting& setting);
// "a,b,,c" -> "a", "b,c": a doubled comma stands for one, as in torchrun
[[nodiscard]] std::vector<std::string> parse_texts(const cli::Setting& setting);
// Splits at every `separator`; "" gives one empty element.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace drun::launcher
