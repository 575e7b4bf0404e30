#include <cstdio>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/standard_streams.hpp"
#include "ctl/drunctl.hpp"

namespace drun::ctl {
namespace {

using Json = nlohmann::ordered_json;

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

// How many bytes the UTF-8 character at the front has; 0: none is there.
std::size_t utf8_length(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(bytes[i]) & 0xC0U) != 0x80) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(bytes[1]) : 0U;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
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
    const std::size_t length = utf8_length(bytes);
    if (first == '\\') {
      text += "\\\\";
    } else if (first == '\n') {
      text += "\\n";
    } else if (first == '\t') {
      text += "\\t";
    } else if (length == 0 || first < ' ' || first == 0x7F) {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02x", first);
      text += code;
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length - 1);
    }
    bytes.remove_prefix(1);
  }
  return text;
}

}  // namespace drun::ctl
