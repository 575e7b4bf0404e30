// JSON, by nlohmann's library. What drun uses of its templates is compiled once, in json.cpp: in
// each room anew, it would take a tenth of the whole build.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace drun {

// Discarded (`is_discarded()`) if `text` is no JSON; throws nothing.
[[nodiscard]] nlohmann::json parse_json(std::string_view text);
// With the fields of objects in the order in which they are written.
[[nodiscard]] nlohmann::ordered_json parse_ordered_json(std::string_view text);

// On one line. What is no UTF-8 in a string becomes U+FFFD. `ascii`: all other characters are
// escaped.
[[nodiscard]] std::string json_text(const nlohmann::json& json, bool ascii = false);
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json, bool ascii = false);

}  // namespace drun
