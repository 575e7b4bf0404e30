// Result<T>: the value of an operation that is expected to fail now and then, or the reason why it
// did. Use it for what the other side or the user may cause (time-out, peer gone, malformed bytes,
// exec failed); throw std::system_error for a broken environment; assert for our own mistakes.
#pragma once

#include <cassert>
#include <string>
#include <system_error>
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

  // Precondition: ok(); without it they throw std::bad_variant_access.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !ok(); without it, likewise.
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace drun
