// drun-store's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "drun/base/endpoint.hpp"
#include "drun/base/log.hpp"
#include "drun/store/server.hpp"

namespace drun::store {

struct StoreSettings {
  Endpoint endpoint{"", 29400};
  ServerOptions server{};
  std::string snapshot{};
  std::chrono::milliseconds snapshot_interval{1000};
  log::Level level = log::Level::Warning;
};

// Throws UsageError. nullopt: --help or the like, which has been answered.
[[nodiscard]] std::optional<StoreSettings> parse_store_options(int argc, char** argv);

}  // namespace drun::store
