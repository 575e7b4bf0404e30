// What the values of drun's flags mean. Each function throws UsageError naming the flag or variable
// as the user wrote it, the value, and what is allowed. Blanks around a number do not matter. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/command_line/options_scan.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// "--nnodes '0': <why>"
[[noreturn]] void refuse(const Setting& setting, const std::string& why);

[[nodiscard]] int parse_integer(const Setting& setting, int lowest, int highest);
// "2" or "1:4" -> minimum and maximum
[[nodiscard]] std::pair<int, int> parse_nodes(const Setting& setting);
// "90", "1.5", "5m", "1h30m", "500ms"; not negative; `zero` allows 0.
[[nodiscard]] std::chrono::milliseconds parse_duration(const Setting& setting, bool zero);
// "500", "500K", "100M", "2G": bytes, in powers of 1024
[[nodiscard]] std::uint64_t parse_size(const Setting& setting);
// "SIGUSR1,USR2,10" -> numbers; SIGKILL and SIGSTOP cannot be caught and are refused.
[[nodiscard]] std::vector<int> parse_signals(const Setting& setting);
[[nodiscard]] int parse_stop_signal(const Setting& setting);
// "1-9,137,SIGKILL"
[[nodiscard]] ExitSet parse_exit_set(const Setting& setting);
// "3" or "0:3,1:1"
[[nodiscard]] StreamChoice parse_streams(const Setting& setting);
// "0,2,5": not negative
[[nodiscard]] std::vector<int> parse_ranks(const Setting& setting);
// "a,b,,c" -> "a", "b,c": a doubled comma stands for one, as in torchrun
[[nodiscard]] std::vector<std::string> parse_texts(const Setting& setting);
// One of `words`; the index of the one given.
[[nodiscard]] std::size_t parse_choice(const Setting& setting,
                                       const std::vector<std::string_view>& words);

// Splits at every `separator`; "" gives one empty element.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace drun::launcher
