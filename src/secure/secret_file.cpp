#include "secure/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"

namespace drun::secure {
namespace {

// Why a file is not one to keep a secret in; empty: it is.
std::string weakness(const struct stat& file, const std::string& path, const SecretRule& rule) {
  // Before all: nobody may be told to change the mode of a device.
  if (!S_ISREG(file.st_mode) && !S_ISFIFO(file.st_mode)) return "it is neither a file nor a pipe";
  const std::string name = " " + printable(shell_quoted(path));
  const uid_t own = ::geteuid();
  if (file.st_uid != own && file.st_uid != 0)
    return "it belongs to user " + std::to_string(file.st_uid) + ", who can change it: chown " +
           std::to_string(own) + name + " (as root)";
  mode_t shared = rule.root_shares && file.st_uid == 0 ? S_IRGRP : 0;
  if (rule.is_public) shared = S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
  if ((file.st_mode & (S_IRWXG | S_IRWXO) & ~shared) == 0) return "";
  std::array<char, 8> mode{};
  (void)std::snprintf(mode.data(), mode.size(), "%04o", file.st_mode & 07777U);
  return std::string("others may ") + (rule.is_public ? "change" : "use") + " it (mode " +
         mode.data() + "): chmod " + (rule.is_public ? "644" : "600") + name;
}

Result<std::string> content(const std::string& path, const SecretRule& rule) {
  const auto failed = [](int error) {
    const std::error_code code(error, std::generic_category());
    return Error(code, code.message());
  };
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return failed(errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return failed(errno);
  if (const std::string weak = weakness(about, path, rule); !weak.empty())
    return Error(std::make_error_code(std::errc::permission_denied), weak);
  std::string text(rule.most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

Result<std::string> read_secret(const std::string& path, const SecretRule& rule,
                                std::chrono::milliseconds limit) {
  auto answer = ask_files<Result<std::string>>(limit, [path, rule] {
    about_to("read it to its end");
    return content(path, rule);
  });
  return answer ? std::move(*answer) : Result<std::string>(answer.error());
}

}  // namespace drun::secure
