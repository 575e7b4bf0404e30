// What several documents have in common, as JSON, and what limits all of them. For the sources that
// encode and decode documents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/documents.hpp"
#include "rendezvous/json_reader.hpp"

namespace drun::rendezvous {

using Json = nlohmann::json;

inline constexpr int kMaxRound = 1'000'000'000;  // no job comes there; the next number is one, too
inline constexpr int kMaxInt = std::numeric_limits<int>::max();
inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kMaxText = 8 * 1024;  // of one text

inline constexpr std::array<const char*, 5> kCauses = {"none", "failure", "membership", "resize",
                                                       "time-limit"};

// Keeps the end of a long text: the last lines of a traceback or a log matter most.
[[nodiscard]] std::string clip(const std::string& text, std::size_t room = kMaxText);

[[nodiscard]] Json to_json(const Place& place);
void read(JsonReader& in, Place& place);
[[nodiscard]] Json to_json(const Assignment& a);
void read(JsonReader& in, Assignment& a);
[[nodiscard]] Json to_json(const StopRequest& request);
void read(JsonReader& in, StopRequest& stop);

// Calls `take` with a reader of each object in the array `name`.
template <typename F>
void read_objects(JsonReader& in, const char* name, F take) {
  in.each(name, [&](const Json& element) {
    JsonReader nested(name, element);
    take(nested);
    if (!nested.error().empty()) in.fail(std::string(name) + ": " + nested.error());
  });
}

// Reads the nested object `name`, if there is one.
template <typename T, typename Out>
void read_nested_as(JsonReader& in, const char* name, Out& out) {
  const Json* field = in.object(name);
  if (field == nullptr) return;
  JsonReader nested(name, *field);
  T value;
  read(nested, value);
  if (!nested.error().empty()) in.fail(std::string(name) + ": " + nested.error());
  out = std::move(value);
}

template <typename T>
void read_nested(JsonReader& in, const char* name, std::optional<T>& out) {
  read_nested_as<T>(in, name, out);
}

inline void read_nested(JsonReader& in, const char* name, Place& out) {
  read_nested_as<Place>(in, name, out);
}

}  // namespace drun::rendezvous
