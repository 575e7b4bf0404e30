#include <system_error>

#include <nlohmann/json.hpp>

#include "base/hex.hpp"
#include "base/standard_streams.hpp"
#include "base/utf8.hpp"
#include "ctl/drunctl.hpp"

namespace drun::ctl {
namespace {

using Json = nlohmann::ordered_json;

// By hand: no library that drunctl links has it.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63U] : '=');
    }
  }
  return text;
}

}  // namespace

void print(std::string_view bytes) {
  const Status written = write_standard_output(bytes);
  if (!written && written.error().code() == std::errc::broken_pipe) throw NoReader();
  if (!written) throw std::system_error(written.error().code(), "write to standard output");
}

std::string json_object(const Fields& text_fields,
                        const std::vector<std::pair<std::string, std::int64_t>>& numbers) {
  Json object = Json::object();
  for (const auto& [name, text] : text_fields) {
    if (is_utf8(text)) {
      object[name] = text;
    } else {
      object[name + "_base64"] = base64(text);
    }
  }
  for (const auto& [name, number] : numbers)
    object[name] = number;
  return object.dump() + "\n";
}

std::string json_list(const std::vector<std::string>& items) {
  Json list = Json::array();
  for (const std::string& item : items) {
    if (is_utf8(item)) {
      list.push_back(item);
    } else {
      list.push_back({{"base64", base64(item)}});
    }
  }
  return list.dump() + "\n";
}

std::string escaped(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto first = static_cast<unsigned char>(bytes.front());
    const std::size_t length = first_utf8_character(bytes).length;
    if (first == '\\') {
      text += "\\\\";
    } else if (first == '\n') {
      text += "\\n";
    } else if (first == '\t') {
      text += "\\t";
    } else if (length == 0 || first < ' ' || first == 0x7F) {
      append_hex(text, bytes.substr(0, 1), "\\x");
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length - 1);
    }
    bytes.remove_prefix(1);
  }
  return text;
}

}  // namespace drun::ctl
