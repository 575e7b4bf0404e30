#include "status/agent_socket.hpp"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <system_error>
#include <utility>

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

// ---- questions ----

using Buffer = std::array<char, 4'096>;

// So many are asked at a time: a process has few descriptors.
constexpr std::size_t kMostAsked = 256;
// An agent that stands still lets a few wait, and then none.
constexpr std::chrono::milliseconds kCallAgain{10};

// One that has been asked. What it says may be a secret: it is overwritten where it was.
struct Asked {
  Asked(std::size_t number, FileDescriptor connected, std::size_t usual)
      : place(number), socket(std::move(connected)) {
    answer.reserve(usual);
  }
  Asked(Asked&&) = default;
  Asked& operator=(Asked&&) = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() { ::explicit_bzero(answer.data(), answer.size()); }

  std::size_t place;  // among the names
  FileDescriptor socket;
  std::string answer;
};

Error no_answer(int socket) {
  const pid_t agent = peer_of(socket).pid;
  return Error(
      std::make_error_code(std::errc::timed_out),
      (agent > 0 ? "process " + std::to_string(agent) : "a drun of this host") + ": no answer");
}

// Of a socket whose owner is not believed nothing is kept, nor waited for.
Result<FileDescriptor> call(const std::string& name, Question question) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno(errno, "make a socket");
  for (const auto& [each, word] : kQuestions) {
    if (each != question) continue;
    const auto [own, own_size] =
        address_of(std::string(kAsk) + std::string(word) + "/" + random_name(16));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), own_size) != 0)
      return Error::from_errno(errno, "name a socket");
  }
  const auto [address, size] = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return Error::from_errno(errno, "connect");
  const uid_t user = user_at(socket.get());
  if (!may_answer(::geteuid(), user) || !is_owner(name, user))
    return Error(std::make_error_code(std::errc::permission_denied), "another user's process");
  return socket;
}

// Others that are asked give their descriptors back.
bool may_be_called_again(const Error& error, bool others_are_asked) {
  return error.code() == std::errc::resource_unavailable_try_again ||
         (others_are_asked && (error.code() == std::errc::too_many_files_open ||
                               error.code() == std::errc::too_many_files_open_in_system));
}

// Nullopt: there is more to come.
std::optional<Result<std::string>> hear(Asked& asked, std::size_t longest, Buffer& bytes) {
  for (;;) {
    const auto got = ::recv(asked.socket.get(), bytes.data(), bytes.size(), 0);
    if (got == 0) return std::move(asked.answer);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return std::nullopt;
      return Error::from_errno(errno, "read");
    }
    asked.answer.append(bytes.data(), static_cast<std::size_t>(got));
    if (asked.answer.size() > longest)
      return Error(std::make_error_code(std::errc::message_size), "an endless answer");
  }
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
  return std::move(ask_all({name}, deadline, question, longest).front());
}

std::vector<Result<std::string>> ask_all(const std::vector<std::string>& names,
                                         std::chrono::steady_clock::time_point deadline,
                                         Question question, std::size_t longest) {
  std::vector<Result<std::string>> answers(names.size());
  std::deque<std::size_t> waiting;
  for (std::size_t i = 0; i < names.size(); ++i)
    waiting.push_back(i);
  std::vector<Asked> asked;
  Buffer bytes;
  for (bool is_over = false; !is_over;) {
    for (auto left = waiting.size(); left > 0 && asked.size() < kMostAsked; --left) {
      const std::size_t place = waiting.front();
      waiting.pop_front();
      auto socket = call(names[place], question);
      if (socket)
        asked.emplace_back(place, std::move(*socket), std::min(longest, bytes.size()));
      else if (may_be_called_again(socket.error(), !asked.empty()))
        waiting.push_back(place);
      else
        answers[place] = socket.error();
    }
    if (waiting.empty() && asked.empty()) break;
    const auto now = std::chrono::steady_clock::now();
    is_over = now >= deadline;
    const bool calls_again = !waiting.empty() && asked.size() < kMostAsked;
    std::vector<pollfd> entries;
    for (const Asked& each : asked)
      entries.push_back({each.socket.get(), POLLIN, 0});
    (void)poll_until(entries, calls_again ? std::min(deadline, now + kCallAgain) : deadline);
    for (std::size_t i = asked.size(); i-- > 0;) {
      if (entries[i].revents == 0) continue;
      auto answer = hear(asked[i], longest, bytes);
      if (!answer) continue;
      answers[asked[i].place] = std::move(*answer);
      std::swap(asked[i], asked.back());
      asked.pop_back();
    }
  }
  for (const Asked& each : asked)
    answers[each.place] = no_answer(each.socket.get());
  for (const std::size_t place : waiting)
    answers[place] = no_answer(-1);
  ::explicit_bzero(bytes.data(), bytes.size());
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
