#include "launcher/report/error_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/atomic_file.hpp"
#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
#include "base/json.hpp"
#include "launcher/output/sanitize.hpp"

namespace drun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kReadLimit = 1024 * 1024;
constexpr std::size_t kQuoteLimit = 200;

// Seconds since the epoch, as a number or as text, with or without a fraction.
std::optional<std::int64_t> epoch_milliseconds(const Json& value) {
  double seconds = 0;
  if (value.is_number()) {
    seconds = value.get<double>();
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    char* end = nullptr;
    seconds = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (!(seconds > 0 && seconds < 1e11)) return std::nullopt;
  return static_cast<std::int64_t>(seconds * 1000.0);
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> time_of(const Json& object) {
  const auto found = object.find("timestamp");
  return found == object.end() ? std::nullopt : epoch_milliseconds(*found);
}

WorkerError quoted(std::string_view bytes, const char* what) {
  WorkerError error;
  error.message = std::string("error file ") + what + ": ";
  const std::size_t end = bytes.find_last_not_of(" \t\r\n");
  if (end != std::string_view::npos) bytes = bytes.substr(0, end + 1);
  std::string flat(bytes.substr(0, 4 * kQuoteLimit));
  for (char& c : flat)
    if (c == '\n' || c == '\r') c = ' ';
  std::string shown = harmless_line(flat, kQuoteLimit);
  if (bytes.size() > flat.size()) shown += "...";
  error.message += shown;
  return error;
}

// All of a regular file, up to the limit.
std::optional<std::string> read_file(const std::string& path) {
  about_to("read " + path);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string bytes;
  char chunk[16384];
  while (bytes.size() < kReadLimit) {
    const ssize_t n = ::read(file.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.append(chunk, static_cast<std::size_t>(n));
  }
  return bytes;
}

}  // namespace

std::string WorkerError::text() const {
  if (traceback.empty()) return message;
  if (traceback.find(message) != std::string::npos) return traceback;
  return traceback + (traceback.back() == '\n' ? "" : "\n") + message;
}

std::optional<WorkerError> parse_error_file(std::string_view bytes) {
  if (bytes.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::nullopt;
  const Json json = parse_json(bytes);
  if (json.is_discarded()) return quoted(bytes, "that is not JSON");
  if (!json.is_object()) return quoted(bytes, "that is not a JSON object");
  const auto message = json.find("message");
  WorkerError error;
  if (message != json.end() && message->is_string()) {
    error.message = message->get<std::string>();
    error.time_ms = time_of(json);
    return error;
  }
  if (message == json.end() || !message->is_object()) return quoted(bytes, "without a message");
  error.message = text_of(*message, "message");
  const auto extra = message->find("extraInfo");
  if (extra != message->end() && extra->is_object()) {
    error.traceback = text_of(*extra, "py_callstack");
    error.time_ms = time_of(*extra);
  }
  if (error.message.empty() && error.traceback.empty()) return quoted(bytes, "without a message");
  return error;
}

std::optional<WorkerError> read_error_file(const std::string& path) {
  const auto bytes = read_file(path);
  return bytes ? parse_error_file(*bytes) : std::nullopt;
}

Status copy_error_file(const std::string& from, const std::string& to, int exit_code) {
  auto bytes = read_file(from);
  if (!bytes) {
    return Error(std::make_error_code(std::errc::no_such_file_or_directory),
                 "read " + from + ": no such file");
  }
  Json json = parse_json(*bytes);
  if (json.is_object() && json.contains("message") && json["message"].is_object()) {
    json["message"]["errorCode"] = exit_code;
    *bytes = json_text(json);
  }
  return write_whole_file(to, *bytes);
}

}  // namespace drun::launcher
