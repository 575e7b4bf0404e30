// The only translation unit that sees spdlog.
#include "drun/base/log.hpp"

#include <memory>
#include <mutex>
#include <string>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace drun::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Trace:
      return spdlog::level::trace;
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warning:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
    case Level::Off:
      break;
  }
  return spdlog::level::off;
}

std::shared_ptr<spdlog::logger> make(std::string_view name, Level level) {
  auto logger = std::make_shared<spdlog::logger>(std::string(name),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%n: %v");
  logger->set_level(to_spdlog(level));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = make("drun", Level::Warning);
  return instance;
}

}  // namespace

void configure(std::string_view name, Level level) {
  logger() = make(name, level);
}

bool enabled(Level level) {
  return logger()->should_log(to_spdlog(level));
}

void write(Level level, std::string_view text) {
  const auto native = to_spdlog(level);
  if (level == Level::Error || level == Level::Warning) {
    logger()->log(native, "{}: {}", level == Level::Error ? "error" : "warning", text);
  } else {
    logger()->log(native, "{}", text);
  }
}

}  // namespace drun::log
