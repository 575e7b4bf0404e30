// Reading a JSON object that is not trusted, field by field. For the sources that encode and
// decode documents: it keeps nlohmann's header out of all others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "drun/base/result.hpp"

namespace drun::rendezvous {

// Reads the fields of one object and remembers the first thing that was wrong.
class JsonReader {
 public:
  JsonReader(std::string_view what, std::string_view text) : what_(what) {
    owned_ = parse_json(text);
    if (!json_->is_object()) fail("it is no JSON object");
  }
  // `json` must outlive this.
  JsonReader(std::string_view what, const nlohmann::json& json) : what_(what), json_(&json) {
    if (!json_->is_object()) fail("it is no JSON object");
  }
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // The integer `name`, which must be in [low, high].
  template <typename T>
  void integer(const char* name, T& out, std::int64_t low, std::int64_t high,
               bool required = true) {
    const nlohmann::json* field = find(name, required);
    if (field == nullptr) return;
    if (!field->is_number_integer() ||
        (field->is_number_unsigned() &&
         field->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) ||
        field->get<std::int64_t>() < low || field->get<std::int64_t>() > high) {
      fail(std::string(name) + " is no integer from " + std::to_string(low) + " to " +
           std::to_string(high));
      return;
    }
    out = static_cast<T>(field->get<std::int64_t>());
  }

  void text(const char* name, std::string& out, bool required = true) {
    const nlohmann::json* field = find(name, required);
    if (field == nullptr) return;
    if (!field->is_string()) return fail(std::string(name) + " is no string");
    out = field->get_ref<const std::string&>();
  }

  void flag(const char* name, bool& out) {
    const nlohmann::json* field = find(name, false);
    if (field == nullptr) return;
    if (!field->is_boolean()) return fail(std::string(name) + " is no boolean");
    out = field->get<bool>();
  }

  void lines(const char* name, std::vector<std::string>& out) {
    const nlohmann::json* field = find(name, false);
    if (field == nullptr) return;
    if (!field->is_array()) return fail(std::string(name) + " is no array");
    for (const auto& line : *field) {
      if (!line.is_string()) return fail(std::string(name) + " holds something else than strings");
      out.push_back(line.get_ref<const std::string&>());
    }
  }

  // Calls `take` with each element of the array `name`, if there is one.
  template <typename F>
  void each(const char* name, F take) {
    const nlohmann::json* field = find(name, false);
    if (field == nullptr) return;
    if (!field->is_array()) return fail(std::string(name) + " is no array");
    for (const auto& element : *field)
      take(element);
  }

  void texts(const char* name, std::map<std::string, std::string>& out) {
    const nlohmann::json* field = find(name, true);
    if (field == nullptr) return;
    if (!field->is_object()) return fail(std::string(name) + " is no object");
    for (const auto& [key, value] : field->items()) {
      if (!value.is_string()) return fail(std::string(name) + " holds something else than strings");
      out.emplace(key, value.get_ref<const std::string&>());
    }
  }

  // One of `names`, by its place in the list.
  template <typename E, std::size_t N>
  void choice(const char* name, E& out, const std::array<const char*, N>& names) {
    std::string word;
    text(name, word);
    if (!error_.empty()) return;
    const auto* at = std::find(names.begin(), names.end(), word);
    if (at == names.end()) return fail(std::string(name) + " is unknown");
    out = static_cast<E>(at - names.begin());
  }

  // The nested object, or null.
  const nlohmann::json* object(const char* name) { return find(name, false); }

  void fail(std::string problem) {
    if (error_.empty()) error_ = std::move(problem);
  }
  [[nodiscard]] const std::string& error() const { return error_; }

  template <typename T>
  Result<T> finish(T value) {
    if (error_.empty()) return value;
    return Error(std::make_error_code(std::errc::bad_message),
                 "malformed " + std::string(what_) + " document: " + error_);
  }

 private:
  const nlohmann::json* find(const char* name, bool required) {
    if (!error_.empty()) return nullptr;
    const auto field = json_->find(name);
    if (field != json_->end()) return &*field;
    if (required) fail(std::string(name) + " is missing");
    return nullptr;
  }

  std::string_view what_;
  nlohmann::json owned_;
  const nlohmann::json* json_ = &owned_;
  std::string error_;
};

}  // namespace drun::rendezvous
