#include "launcher/devices/device_request.hpp"

#include <array>
#include <utility>

namespace drun::launcher {
namespace {

// By DeviceFlag, from 1.
constexpr std::array kNames{"nproc-per-node",     "gpu-ids",     "include", "exclude",
                            "virtual-local-rank", "numa-binding"};

const char* name_of(int flag) {
  return kNames.at(static_cast<std::size_t>(flag) - 1);
}

class DeviceFlags final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "flag"; }
  [[nodiscard]] std::string message(int flag) const override {
    return std::string("--") + name_of(flag);
  }
};

const DeviceFlags& category() {
  static const DeviceFlags kFlags;
  return kFlags;
}

}  // namespace

std::error_code make_error_code(DeviceFlag flag) {
  return {static_cast<int>(flag), category()};
}

Error refused(DeviceFlag flag, std::string rest) {
  return Error(make_error_code(flag), std::move(rest));
}

Error refused(std::string sentence) {
  return Error(std::make_error_code(std::errc::invalid_argument), std::move(sentence));
}

const char* flag_of(const Error& error) {
  return error.code().category() == category() ? name_of(error.code().value()) : nullptr;
}

}  // namespace drun::launcher
