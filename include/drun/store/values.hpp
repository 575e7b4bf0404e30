// Values of other types than text, as the bytes that a store holds. Client::set(), get() and
// exchange() take them as they are; with other calls, encode and decode by hand:
//
//   store.queue_push("losses", encode(0.5));
//   auto loss = store.queue_try_pop("losses");   // ... decode<double>(**loss)
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

#include "drun/base/result.hpp"
#include "drun/store/errors.hpp"

namespace drun::store {

// Decimal text ("-17"), which add() and clients in other languages read and write too. bool is 0 or
// 1; a char is not among them.
template <typename T>
concept Integer =
    std::integral<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

// The bytes as they lie in memory: floating-point numbers, enumerations, std::byte, structs and
// std::arrays of such. Both sides must be built alike, for one kind of processor. The compiler
// cannot see whether a struct holds pointers, which mean nothing to others.
template <typename T>
concept Plain =
    std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !Integer<T> &&
    !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T> &&
    !std::is_array_v<T> && !std::is_empty_v<T> &&
    !std::convertible_to<const T&, std::string_view> &&
    (!std::ranges::range<T> || requires { std::tuple_size<T>::value; });

// One after the other, as they lie in memory: a std::vector or std::span of plain values or of
// numbers. A span is for writing alone; read a vector.
template <typename T>
concept Sequence = std::ranges::contiguous_range<const T> && std::ranges::sized_range<const T> &&
                   !std::is_array_v<T> &&
                   !Plain<T> && !std::convertible_to<const T&, std::string_view> &&
                   std::is_trivially_copyable_v<std::ranges::range_value_t<T>> &&
                   !std::is_pointer_v<std::ranges::range_value_t<T>>;

// What can be written, besides text.
template <typename T>
concept Storable = Integer<T> || Plain<T> || Sequence<T>;
// What can be read.
template <typename T>
concept Readable = Integer<T> || Plain<T> || std::same_as<T, std::string> ||
    (Sequence<T>&& std::same_as<T, std::vector<std::ranges::range_value_t<T>>>);

template <Storable T>
[[nodiscard]] std::string encode(const T& value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (Integer<T>) {
    return std::to_string(value);
  } else if constexpr (Plain<T>) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  } else {
    const auto bytes = std::as_bytes(std::span(std::ranges::data(value), std::ranges::size(value)));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

// An error, Errc::Malformed, says what the bytes are not.
template <Readable T>
[[nodiscard]] Result<T> decode(std::string_view bytes) {
  const auto misfit = [&](const std::string& wanted) {
    return Error(Errc::Malformed,
                 "the value, of " + std::to_string(bytes.size()) + " bytes, is not " + wanted);
  };
  if constexpr (std::same_as<T, std::string>) {
    return std::string(bytes);
  } else if constexpr (std::same_as<T, bool>) {
    if (bytes == "0" || bytes == "1") return bytes == "1";
    return misfit("0 or 1");
  } else if constexpr (Integer<T>) {
    T number{};
    const char* const end = bytes.data() + bytes.size();
    const auto [stop, error] = std::from_chars(bytes.data(), end, number);
    if (error == std::errc() && stop == end) return number;
    return misfit("a whole number that its type can hold");
  } else if constexpr (Plain<T>) {
    if (bytes.size() != sizeof(T)) return misfit("one of " + std::to_string(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  } else {
    constexpr std::size_t kSize = sizeof(typename T::value_type);
    if (bytes.size() % kSize != 0) return misfit("a row of values of " + std::to_string(kSize));
    T values(bytes.size() / kSize);
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
}

}  // namespace drun::store
