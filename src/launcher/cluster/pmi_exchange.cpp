#include "launcher/cluster/pmi_exchange.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/poll_until.hpp"
#include "base/printable.hpp"
#include "launcher/pmi/pmi_line.hpp"

namespace drun::launcher::cluster {
namespace {

Error broken(const std::string& what) {
  return Error(std::make_error_code(std::errc::protocol_error), "PMI_FD: " + what);
}

class Conversation {
 public:
  Conversation(int fd, std::chrono::steady_clock::time_point deadline)
      : fd_(fd), deadline_(deadline) {}

  // The answer to a line, which must be this command without an error.
  Result<std::string> ask(const std::string& line, const std::string& answer) {
    std::string_view rest = line;
    while (!rest.empty()) {
      if (!await_ready(fd_.get(), POLLOUT, deadline_)) return broken("no answer in time");
      const auto sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return broken("the launcher has closed it");
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    auto reply = read_line();
    if (!reply) return reply;
    const std::string rc = pmi::field(*reply, "rc");
    if (pmi::field(*reply, "cmd") != answer || (!rc.empty() && rc != "0"))
      return broken("'" + printable(*reply) + "' is no answer to " +
                    line.substr(0, line.find_first_of(" \n")));
    return reply;
  }

 private:
  Result<std::string> read_line() {
    for (;;) {
      auto line = pmi::take_line(buffer_);
      if (!line) return broken("the launcher's answer is " + line.error().what());
      if (*line) return std::move(**line);
      if (!await_ready(fd_.get(), POLLIN, deadline_))
        return broken("not all tasks of the launcher came in time");
      char bytes[1'024];
      const auto got = ::read(fd_.get(), bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno != ECONNRESET) return Error::from_errno(errno, "PMI_FD");
      if (got <= 0) return broken("the launcher has closed it");
      buffer_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  FileDescriptor fd_;
  std::chrono::steady_clock::time_point deadline_;
  std::string buffer_;
};

}  // namespace

Result<PmiAnswer> exchange_by_pmi(int fd, bool first, const std::string& text,
                                  std::chrono::steady_clock::time_point deadline) {
  if (::fcntl(fd, F_GETFD) < 0) return broken("this descriptor is not open");
  Conversation launcher(fd, deadline);
  const auto begun = launcher.ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");
  if (!begun) return begun.error();
  const auto named = launcher.ask("cmd=get_my_kvsname\n", "my_kvsname");
  if (!named) return named.error();
  PmiAnswer result;
  result.space = pmi::field(*named, "kvsname");
  const std::string allocation = " kvsname=" + result.space + " key=drun-host";
  if (first) {
    const auto put = launcher.ask("cmd=put" + allocation + " value=" + text + "\n", "put_result");
    if (!put) return put.error();
  }
  const auto all = launcher.ask("cmd=barrier_in\n", "barrier_out");
  if (!all) return all.error();
  const auto got = launcher.ask("cmd=get" + allocation + "\n", "get_result");
  if (!got) return got.error();
  result.text = pmi::field(*got, "value");
  // Hydra takes a task that leaves without it for one that has crashed.
  const auto over = launcher.ask("cmd=finalize\n", "finalize_ack");
  if (!over) return over.error();
  if (result.text.empty() || result.space.empty()) return broken("it has no word of rank 0");
  return result;
}

}  // namespace drun::launcher::cluster
