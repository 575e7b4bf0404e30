#include "launcher/backend/port_holder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace drun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListens = "0A";

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool holds(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    const auto target = fs::read_symlink(entry->path(), unreadable);
    if (!unreadable && sockets.contains(target.string())) return true;
  }
  return false;
}

// "process 1234 (nginx)"
std::optional<std::string> holder_of(std::uint16_t port, SocketKind kind) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    for (const auto& inode : inodes_at(read(table), port, kind))
      sockets.insert("socket:[" + inode + "]");
  }
  if (sockets.empty()) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = entry->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos || !holds(entry->path(), sockets))
      continue;
    auto name = read(entry->path() / "comm");
    while (!name.empty() && name.back() == '\n')
      name.pop_back();
    return "process " + pid + (name.empty() ? "" : " (" + name + ")");
  }
  return std::nullopt;
}

}  // namespace

std::set<std::string> inodes_at(std::string_view table, std::uint16_t port, SocketKind kind) {
  std::set<std::string> inodes;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode))
      continue;
    const auto colon = local.rfind(':');
    const bool listens = state == kListens;
    if (listens != (kind == SocketKind::Listener) || colon == std::string::npos) continue;
    std::istringstream number(local.substr(colon + 1));
    unsigned found = 0;
    if (number >> std::hex >> found && number.eof() && found == port) inodes.insert(inode);
  }
  return inodes;
}

std::optional<std::string> port_holder(std::uint16_t port) {
  if (auto listener = holder_of(port, SocketKind::Listener)) return listener;
  const auto connection = holder_of(port, SocketKind::Connection);
  if (!connection) return std::nullopt;
  return "a connection of " + *connection;
}

}  // namespace drun::launcher
