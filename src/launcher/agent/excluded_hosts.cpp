#include "launcher/agent/excluded_hosts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

struct ExcludeLine {
  std::string_view host;
  std::int64_t since = 0;
  std::string_view why;
};

struct Line {
  std::string_view text;
  bool comment = false;  // or empty
  std::optional<ExcludeLine> host;
};

// In the order of the file.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    Line line;
    line.text = take_until(text, '\n');
    std::string_view rest = trimmed(line.text);
    line.comment = rest.empty() || rest.starts_with('#');
    if (!line.comment) {
      ExcludeLine each;
      each.host = take_until(rest, ' ');
      const auto since = whole_number<std::int64_t>(take_until(rest, ' '));
      each.since = since.value_or(0);
      each.why = rest;
      if (since) line.host = each;
    }
    lines.push_back(line);
  }
  return lines;
}

// A clock that is ahead must not make a line last for ever.
bool counts(const ExcludeLine& line, std::int64_t now) {
  return line.since <= now + kExcludedFor && line.since + kExcludedFor > now;
}

Error misuse(const std::string& file, const std::string& what) {
  const std::string text = "--exclude-file " + as_name(file) + ": " + what;
  return {std::make_error_code(std::errc::invalid_argument), text};
}

// Opened so that a pipe without a writer is no trap.
Result<std::string> text_of_file(const std::string& file) {
  about_to("read " + as_name(file));
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened) {
    const int error = errno;
    std::error_code ignored;
    const auto folder = std::filesystem::path(file).parent_path();
    if (error == ENOENT && (folder.empty() || std::filesystem::is_directory(folder, ignored)))
      return std::string();
    return misuse(file, error == ENOENT ? "its folder must be there"
                                        : std::generic_category().message(error));
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return misuse(file, "it must be a file");
  if (static_cast<std::size_t>(status.st_size) > kMaxExcludeFile)
    return misuse(file, "it is too large to be a list of hosts");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const auto n = ::read(opened.get(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return misuse(file, std::generic_category().message(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

void change(const std::string& file,
            const std::function<std::string(std::string_view text)>& changed) {
  const auto text = text_of_file(file);
  if (!text) throw std::runtime_error(text.error().what());
  about_to("write " + as_name(file));
  const auto written = write_whole_file(file, changed(*text));
  if (!written) throw std::runtime_error(written.error().what());
}

}  // namespace

ExcludedHosts parse_excluded_hosts(std::string_view text, std::int64_t now) {
  ExcludedHosts hosts;
  for (const Line& line : lines_of(text))
    if (line.host && counts(*line.host, now))
      hosts[std::string(line.host->host)] = "--exclude-file: " + printable(line.host->why);
  return hosts;
}

std::size_t odd_line(std::string_view text) {
  std::size_t number = 0;
  for (const Line& line : lines_of(text)) {
    ++number;
    if (!line.comment && !line.host) return number;
  }
  return 0;
}

std::string with_excluded_host(std::string_view text, const std::string& host, std::string_view why,
                               std::int64_t now) {
  std::vector<Line> kept;
  std::size_t hosts = 1;
  for (const Line& line : lines_of(text)) {
    if (line.host && (line.host->host == host || !counts(*line.host, now))) continue;
    if (line.host) ++hosts;
    kept.push_back(line);
  }
  std::string result;
  for (const Line& line : kept) {
    if (line.host && hosts > kMostExcluded)
      --hosts;
    else
      result += std::string(line.text) + "\n";
  }
  return result + host + " " + std::to_string(now) + " " + printable(why) + "\n";
}

std::string without_excluded_host(std::string_view text, std::string_view host,
                                  std::string_view why) {
  std::string result;
  for (const Line& line : lines_of(text))
    if (!line.host || line.host->host != host || line.host->why != printable(why))
      result += std::string(line.text) + "\n";
  return result;
}

Result<ExcludedHosts> ask_excluded_hosts(const std::string& file) {
  const auto text =
      ask_files<Result<std::string>>(kFilesLimit, [file] { return text_of_file(file); });
  if (!text) return misuse(file, text.error().what());
  if (!*text) return text->error();
  if (const std::size_t line = odd_line(**text); line > 0)
    log::warning(
        "--exclude-file {}: line {} is not understood, and excludes nobody: it must be 'HOST TIME "
        "REASON', TIME in Unix seconds",
        as_name(file), line);
  return parse_excluded_hosts(**text, std::time(nullptr));
}

void add_excluded_host(const std::string& file, const std::string& host, const std::string& why) {
  // A name with a blank would be read as another.
  if (host.empty() || host.find_first_of(" \t\n#") != host.npos) return;
  change(file, [&](std::string_view text) {
    return with_excluded_host(text, host, why, std::time(nullptr));
  });
}

void remove_excluded_host(const std::string& file, const std::string& host,
                          const std::string& why) {
  change(file, [&](std::string_view text) { return without_excluded_host(text, host, why); });
}

}  // namespace drun::launcher
