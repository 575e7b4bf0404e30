#include "facts/sheet.hpp"

#include <system_error>
#include <utility>

#include "base/json.hpp"
#include "base/printable.hpp"

namespace drun::facts {
namespace {

using Json = nlohmann::json;

Error malformed(const char* what) {
  return {std::make_error_code(std::errc::bad_message), std::string("a sheet of facts ") + what};
}

}  // namespace

std::string encode(const Sheet& sheet) {
  constexpr std::size_t kAround = 8;  // quotes, colon and comma
  Json json = Json::object();
  std::size_t size = 2;
  for (const auto& [key, value] : sheet) {
    const std::string shown = printable(value).substr(0, kMaxValue);
    // Each byte may need two: printable() leaves quotes and backslashes.
    size += key.size() + 2 * shown.size() + kAround;
    if (size > kMaxSheet || json.size() == kMaxFacts) break;
    json[key] = shown;
  }
  return json_text(json);
}

Result<Sheet> decode(std::string_view text) {
  if (text.size() > 2 * kMaxSheet) return malformed("is too long");
  const Json json = parse_json(text);
  if (!json.is_object()) return malformed("is no JSON object");
  if (json.size() > kMaxFacts) return malformed("has too many facts");
  Sheet sheet;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return malformed("has a value that is no text");
    sheet.emplace(printable(key).substr(0, kMaxValue),
                  printable(value.get_ref<const std::string&>()).substr(0, kMaxValue));
  }
  return sheet;
}

}  // namespace drun::facts
