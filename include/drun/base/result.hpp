// Result<T>: the value of an operation that is expected to fail now and then, or the reason why it
// did. Use it for what the other side or the user may cause (time-out, peer gone, malformed bytes,
// exec failed); throw std::system_error for a broken environment; assert for our own mistakes.
#pragma once

#include <cassert>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace drun {

// Why something failed: a code to decide on, and a sentence for the user that names the thing and
// the cause ("connect to 10.0.0.1:29500: Connection refused"). `what` never holds a stored value or
// a secret.
class Error {
 public:
  Error() : code_(std::make_error_code(std::errc::invalid_argument)) {}
  Error(std::error_code code, std::string what) : code_(code), what_(std::move(what)) {}

  // errno's meaning, prefixed by what was attempted.
  static Error from_errno(int error, const std::string& attempted) {
    const std::error_code code(error, std::generic_category());
    return Error(code, attempted + ": " + code.message());
  }

  [[nodiscard]] const std::error_code& code() const { return code_; }
  [[nodiscard]] const std::string& what() const { return what_; }

 private:
  std::error_code code_;
  std::string what_;
};

// What Result::value() throws if there is none; what() is the error's sentence. For programs
// that would rather have exceptions:
//
//   const drun::Worker worker = drun::worker().value();
//   store.set("ready", "yes").value();
class ResultError : public std::runtime_error {
 public:
  explicit ResultError(const Error& error)
      : std::runtime_error(error.what().empty() ? error.code().message() : error.what()),
        code_(error.code()) {}

  [[nodiscard]] const std::error_code& code() const { return code_; }

 private:
  std::error_code code_;
};

template <typename T>
class Result;

// Success without a value.
struct Done {};
using Status = Result<Done>;

// Default-constructed it is an error, so that a forgotten assignment is never taken for success.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result() : state_(Error()) {}
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Without a value they throw ResultError.
  T& value() & { return require_value(), std::get<0>(state_); }
  const T& value() const& { return require_value(), std::get<0>(state_); }
  // No reference: in `for (auto& each : client.exchange(...).value())` the value must live on.
  T value() && { return require_value(), std::move(std::get<0>(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !ok(); with a value it throws std::bad_variant_access.
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

  // The value, or `other`.
  template <typename U>
  [[nodiscard]] T value_or(U&& other) const& {
    return ok() ? value() : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  [[nodiscard]] T value_or(U&& other) && {
    return ok() ? std::move(*this).value() : static_cast<T>(std::forward<U>(other));
  }

  // What `function` makes of the value (nothing: a Status), or the error.
  template <typename Function>
  [[nodiscard]] auto map(Function&& function) const& {
    return mapped(*this, std::forward<Function>(function));
  }
  template <typename Function>
  [[nodiscard]] auto map(Function&& function) && {
    return mapped(std::move(*this), std::forward<Function>(function));
  }

  // The same if `function` itself gives a Result.
  template <typename Function>
  [[nodiscard]] auto and_then(Function&& function) const& {
    return chained(*this, std::forward<Function>(function));
  }
  template <typename Function>
  [[nodiscard]] auto and_then(Function&& function) && {
    return chained(std::move(*this), std::forward<Function>(function));
  }

 private:
  void require_value() const {
    if (!ok()) throw ResultError(error());
  }

  template <typename Self, typename Function>
  static auto mapped(Self&& self, Function&& function) {
    using Value = decltype(std::forward<Self>(self).value());
    using Mapped = std::remove_cvref_t<std::invoke_result_t<Function, Value>>;
    if constexpr (std::is_void_v<Mapped>) {
      if (!self) return Status(self.error());
      std::invoke(std::forward<Function>(function), std::forward<Self>(self).value());
      return Status(Done{});
    } else {
      if (!self) return Result<Mapped>(self.error());
      return Result<Mapped>(
          std::invoke(std::forward<Function>(function), std::forward<Self>(self).value()));
    }
  }

  template <typename Self, typename Function>
  static auto chained(Self&& self, Function&& function) {
    using Value = decltype(std::forward<Self>(self).value());
    using Next = std::remove_cvref_t<std::invoke_result_t<Function, Value>>;
    if (!self) return Next(self.error());
    return Next(std::invoke(std::forward<Function>(function), std::forward<Self>(self).value()));
  }

  std::variant<T, Error> state_;
};

}  // namespace drun
