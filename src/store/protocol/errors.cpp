#include "drun/store/errors.hpp"

#include <string>

namespace drun::store {
namespace {

class Category : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "drun-store"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::Timeout:
        return "timed out";
      case Errc::Closed:
        return "connection closed";
      case Errc::NotAStore:
        return "what answers there is not a store";
      case Errc::VersionRefused:
        return "no common version of the control protocol";
      case Errc::Malformed:
        return "malformed message";
      case Errc::LimitExceeded:
        return "beyond a limit of the store";
      case Errc::NoSession:
        return "no session";
      case Errc::SessionExpired:
        return "session expired";
      case Errc::SnapshotDamaged:
        return "damaged snapshot";
      case Errc::Unsupported:
        return "not supported by the server";
      case Errc::WrongToken:
        return "not the same token";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& store_category() {
  static const Category kCategory;
  return kCategory;
}

std::error_code make_error_code(Errc code) {
  return {static_cast<int>(code), store_category()};
}

}  // namespace drun::store
