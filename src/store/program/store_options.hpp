// drun-store's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/log.hpp"
#include "drun/store/server.hpp"
#include "secure/certificate.hpp"

namespace drun::store {

struct StoreOptions {
  Endpoint endpoint{"", 29400};
  ServerOptions server{};
  std::string snapshot{};
  std::string token_file{};
  secure::CertificateFiles certificate{};
  std::chrono::milliseconds snapshot_interval{1000};
  log::Level level = log::Level::Warning;
};

// Either serve with these options, or print `text` (--help and the like) and leave.
struct ParsedStore {
  std::optional<StoreOptions> options;
  std::string text;
};

// `arguments` without argv[0]. Pure. Throws cli::UsageError.
[[nodiscard]] ParsedStore parse_store_options(const std::vector<std::string>& arguments);

}  // namespace drun::store
