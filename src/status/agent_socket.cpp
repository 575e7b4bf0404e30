#include "status/agent_socket.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "base/fnv1a.hpp"
#include "base/poll_until.hpp"
#include "base/random_bytes.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"

namespace drun::status {
namespace {

constexpr std::string_view kStart = "drun/agent/";
constexpr std::string_view kKeyStart = "drun/key/";
constexpr std::string_view kAsk = "drun/ask/";
constexpr auto kQuestions = std::to_array<std::pair<Question, std::string_view>>(
    {{Question::Stacks, "stacks"},
     {Question::QuickStacks, "quick-stacks"},
     {Question::JobStacks, "job-stacks"},
     {Question::QuickJobStacks, "quick-job-stacks"},
     {Question::Job, "job"},
     {Question::Usage, "usage"}});

std::string digest_of(std::string_view job) {
  return std::to_string(fnv1a(job));
}

ucred peer_of(int socket) {
  ucred peer{0, static_cast<uid_t>(-1), 0};
  socklen_t size = sizeof peer;
  (void)::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer;
}

// An address in the abstract namespace, and its length.
std::pair<sockaddr_un, socklen_t> address_of(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

// Of sockets with names that begin so, then with the user, and the job if there is one.
std::vector<std::string> names_in(std::string_view table, std::string_view start,
                                  const Sought& sought) {
  const auto user = std::to_string(sought.user);
  std::vector<std::string> result;
  while (!table.empty()) {
    const std::string_view line = take_until(table, '\n');
    const auto at = line.rfind(" @");
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(at + 2);
    if (!name.starts_with(start)) continue;
    std::string_view rest = name.substr(start.size());
    if (const auto owner = take_until(rest, '/'); owner != user && sought.user != 0) continue;
    if (const auto job = take_until(rest, '/'); sought.job && job != digest_of(*sought.job))
      continue;
    result.emplace_back(name);
  }
  // A connection that waits to be taken is listed as well.
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// Any user may listen at any name: only the one that it names is believed.
bool is_owner(std::string_view name, uid_t user) {
  for (const std::string_view start : {kStart, kKeyStart}) {
    if (!name.starts_with(start)) continue;
    std::string_view rest = name.substr(start.size());
    return take_until(rest, '/') == std::to_string(user);
  }
  return true;
}

// How deep in namespaces of processes a process is; 0: it cannot be seen.
std::size_t depth_of(const std::string& process) {
  constexpr std::string_view kLine = "\nNSpid:";
  const std::string text = read_small_file("/proc/" + process + "/status").value_or("");
  const auto at = text.find(kLine);
  if (at == std::string::npos) return 0;
  std::string_view rest = std::string_view(text).substr(at + kLine.size());
  const std::string_view line = take_until(rest, '\n');
  return static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t'));
}

}  // namespace

std::string new_socket_name(uid_t user, std::string_view job) {
  return std::string(kStart) + std::to_string(user) + "/" + digest_of(job) + "/" + random_name(16);
}

std::string new_key_socket_name(uid_t user, std::string_view job) {
  return std::string(kKeyStart) + std::to_string(user) + "/" + digest_of(job) + "/" +
         random_name(16);
}

std::vector<std::string> sockets_in(std::string_view table, const Sought& sought) {
  return names_in(table, kStart, sought);
}

std::vector<std::string> key_sockets_in(std::string_view table, const Sought& sought) {
  auto names = names_in(table, kKeyStart, sought);
  std::erase_if(names, [&](const auto& name) { return !is_owner(name, sought.user); });
  return names;
}

std::vector<std::string> find_sockets(const std::optional<std::string>& job) {
  return sockets_in(read_small_file("/proc/self/net/unix").value_or(""), {::geteuid(), job});
}

std::vector<std::string> find_key_sockets(const std::optional<std::string>& job) {
  return key_sockets_in(read_small_file("/proc/self/net/unix").value_or(""), {::geteuid(), job});
}

Result<std::string> ask(const std::string& name, std::chrono::steady_clock::time_point deadline,
                        Question question, std::size_t longest) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno(errno, "make a socket");
  const auto no_answer = [&] {
    const pid_t agent = peer_of(socket.get()).pid;
    return Error(
        std::make_error_code(std::errc::timed_out),
        (agent > 0 ? "process " + std::to_string(agent) : "a drun of this host") + ": no answer");
  };
  // An agent that stands still lets a few wait, and then none.
  const auto left = std::max(time_left(deadline), std::chrono::milliseconds(1));
  const timeval limit{left.count() / 1'000, (left.count() % 1'000) * 1'000};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  for (const auto& [each, word] : kQuestions) {
    if (each != question) continue;
    const auto [own, own_size] =
        address_of(std::string(kAsk) + std::string(word) + "/" + random_name(16));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), own_size) != 0)
      return Error::from_errno(errno, "name a socket");
  }
  const auto [address, size] = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return errno == EAGAIN ? no_answer() : Error::from_errno(errno, "connect");
  const uid_t user = user_at(socket.get());
  if (!may_answer(::geteuid(), user) || !is_owner(name, user))
    return Error(std::make_error_code(std::errc::permission_denied), "another user's process");
  std::string answer;
  std::array<char, 4'096> bytes;
  while (await_ready(socket.get(), POLLIN, deadline)) {
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return answer;
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return Error::from_errno(errno, "read");
    }
    answer.append(bytes.data(), static_cast<std::size_t>(got));
    if (answer.size() > longest)
      return Error(std::make_error_code(std::errc::message_size), "an endless answer");
  }
  return no_answer();
}

std::vector<Result<std::string>> ask_all(const std::vector<std::string>& names,
                                         std::chrono::steady_clock::time_point deadline,
                                         Question question, std::size_t longest) {
  std::vector<Result<std::string>> answers(names.size());
  std::vector<std::thread> threads;
  threads.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    threads.emplace_back([&, i] { answers[i] = ask(names[i], deadline, question, longest); });
  for (auto& thread : threads)
    thread.join();
  return answers;
}

Question question_of(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      size <= offsetof(sockaddr_un, sun_path) + 1)
    return Question::Status;
  std::string_view name(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  if (!name.starts_with(kAsk)) return Question::Status;
  name.remove_prefix(kAsk.size());
  const std::string_view word = take_until(name, '/');
  for (const auto& [each, known] : kQuestions)
    if (word == known) return each;
  return Question::Status;
}

// A process that is seen from here, and is as deep, is in the same container.
bool may_know(int socket) {
  const ucred peer = peer_of(socket);
  if (peer.pid <= 0 || !may_ask(::geteuid(), peer.uid)) return false;
  const std::size_t depth = depth_of(std::to_string(peer.pid));
  return depth > 0 && depth == depth_of("self");
}

uid_t user_at(int socket) {
  return peer_of(socket).uid;
}

}  // namespace drun::status
