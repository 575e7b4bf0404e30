#include "base/json.hpp"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace drun {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

std::string json_text(const nlohmann::json& json, bool ascii) {
  return json.dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& json, bool ascii) {
  return json.dump(-1, ' ', ascii, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace drun
