// The only translation unit that sees spdlog.
#include "base/log.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/log_name.hpp"
#include "base/printable.hpp"

namespace drun::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
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

// Hands finished lines to a function. The mutex of base_sink makes it safe for all threads.
class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string)> write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  std::function<void(std::string)> write_;
};

std::shared_ptr<spdlog::logger> make(std::string_view name, spdlog::level::level_enum level,
                                     std::shared_ptr<spdlog::sinks::sink> sink, bool times) {
  auto logger = std::make_shared<spdlog::logger>(std::string(name), std::move(sink));
  logger->set_pattern(std::string(times ? "%Y-%m-%dT%H:%M:%S.%e%z " : "") + "%n: %v");
  logger->set_level(level);
  return logger;
}

bool times_on_stderr = false;
bool colored = false;

std::shared_ptr<spdlog::sinks::sink> to_stderr() {
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      make("drun", spdlog::level::warn, to_stderr(), false);
  return instance;
}

}  // namespace

void configure(std::string_view name, Level level, bool times) {
  times_on_stderr = times;
  logger() = make(name, to_spdlog(level), to_stderr(), times);
}

std::string own_name() {
  return logger()->name();
}

void redirect(std::function<void(std::string)> write) {
  const bool direct = !write;
  auto sink = direct ? to_stderr() : std::make_shared<FunctionSink>(std::move(write));
  logger() = make(logger()->name(), logger()->level(), std::move(sink), direct && times_on_stderr);
}

void use_color(bool color) {
  colored = color;
}

bool uses_color() {
  return colored;
}

void write_formatted(Level level, Ink ink, fmt::string_view format, fmt::format_args arguments) {
  const auto native = to_spdlog(level);
  if (!logger()->should_log(native)) return;
  fmt::memory_buffer text;
  if (level == Level::Error) text.append(fmt::string_view("error: "));
  if (level == Level::Warning) text.append(fmt::string_view("warning: "));
  fmt::vformat_to(fmt::appender(text), format, arguments);
  // Names and texts come from other machines: none of them acts on a terminal, or makes a line.
  const std::string line = printable({text.data(), text.size()});
  logger()->log(native, colored ? painted(line, ink) : line);
}

}  // namespace drun::log
