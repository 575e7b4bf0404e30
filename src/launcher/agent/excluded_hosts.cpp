#include "launcher/agent/excluded_hosts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
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

// Those that count, in the order of the file.
std::vector<ExcludeLine> lines_that_count(std::string_view text, std::int64_t now) {
  std::vector<ExcludeLine> lines;
  while (!text.empty()) {
    std::string_view line = trimmed(take_until(text, '\n'));
    if (line.starts_with('#')) continue;
    ExcludeLine each;
    each.host = take_until(line, ' ');
    const auto since = whole_number<std::int64_t>(take_until(line, ' '));
    // A clock that is ahead must not make a line last for ever.
    if (each.host.empty() || !since || *since > now + kExcludedFor || *since + kExcludedFor <= now)
      continue;
    each.since = *since;
    each.why = line;
    lines.push_back(each);
  }
  return lines;
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
    return misuse(file, std::generic_category().message(error));
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

}  // namespace

ExcludedHosts parse_excluded_hosts(std::string_view text, std::int64_t now) {
  ExcludedHosts hosts;
  for (const ExcludeLine& line : lines_that_count(text, now))
    hosts[std::string(line.host)] = "--exclude-file: " + printable(line.why);
  return hosts;
}

std::string with_excluded_host(std::string_view text, const std::string& host, std::string_view why,
                               std::int64_t now) {
  std::vector<ExcludeLine> kept;
  for (const ExcludeLine& line : lines_that_count(text, now))
    if (line.host != host) kept.push_back(line);
  if (kept.size() >= kMostExcluded)
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(kMostExcluded - 1));
  std::string result;
  for (const ExcludeLine& line : kept)
    result += std::string(line.host) + " " + std::to_string(line.since) + " " +
              std::string(line.why) + "\n";
  return result + host + " " + std::to_string(now) + " " + printable(why) + "\n";
}

Result<ExcludedHosts> ask_excluded_hosts(const std::string& file) {
  const auto text =
      ask_files<Result<std::string>>(kFilesLimit, [file] { return text_of_file(file); });
  if (!text) return misuse(file, text.error().what());
  if (!*text) return text->error();
  return parse_excluded_hosts(**text, std::time(nullptr));
}

void add_excluded_host(const std::string& file, const std::string& host, const std::string& why) {
  // A name with a blank would be read as another.
  if (host.empty() || host.find_first_of(" \t\n#") != host.npos) return;
  const auto text = text_of_file(file);
  if (!text) throw std::runtime_error(text.error().what());
  about_to("write " + as_name(file));
  const auto written =
      write_whole_file(file, with_excluded_host(*text, host, why, std::time(nullptr)));
  if (!written) throw std::runtime_error(written.error().what());
}

}  // namespace drun::launcher
