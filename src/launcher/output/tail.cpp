#include "launcher/output/tail.hpp"

#include <string.h>

#include <algorithm>
#include <utility>

#include "launcher/output/sanitize.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kLineLimit = 512;         // of a line, in the report
constexpr std::size_t kTotalLimit = 8 * 1024;   // of all lines together
constexpr std::size_t kBytesLimit = 32 * 1024;  // kept raw, for all lines together

}  // namespace

void Tail::append(std::string_view bytes) {
  if (wanted_ == 0) return;
  // Only the end can matter: find where the wanted lines begin, from the back.
  if (bytes.size() > kBytesLimit) bytes.remove_prefix(bytes.size() - kBytesLimit);
  std::size_t from = bytes.size();
  std::size_t breaks = 0;
  while (from > 0) {
    const void* found = ::memrchr(bytes.data(), '\n', from);
    if (found == nullptr) {
      from = 0;
      break;
    }
    from = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    if (++breaks > wanted_ + 1) break;
  }
  if (from > 0 || bytes.size() == kBytesLimit) bytes_.clear();
  bytes_.append(bytes.substr(from));
  if (bytes_.size() > 2 * kBytesLimit) bytes_.erase(0, bytes_.size() - kBytesLimit);
}

std::vector<std::string> Tail::lines() const {
  return last_lines(bytes_, wanted_);
}

std::vector<std::string> last_lines(std::string_view bytes, std::size_t wanted) {
  std::vector<std::string> lines;  // last one first
  std::size_t total = 0;
  while (!bytes.empty() && lines.size() < wanted) {
    if (bytes.back() == '\n') bytes.remove_suffix(1);
    const auto newline = bytes.rfind('\n');
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    std::string line = harmless_line(bytes.substr(begin), kLineLimit);
    bytes = bytes.substr(0, begin);
    if (line.empty() && lines.empty()) continue;
    total += line.size() + 1;
    if (total > kTotalLimit) break;
    lines.push_back(std::move(line));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace drun::launcher
