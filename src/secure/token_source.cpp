#include "secure/token_source.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"

namespace drun::secure {
namespace {

// Why a file is not one to keep a secret in; empty: it is.
std::string weakness(const struct stat& file, const std::string& path) {
  // Before all: nobody may be told to change the mode of a device.
  if (!S_ISREG(file.st_mode) && !S_ISFIFO(file.st_mode)) return "it is neither a file nor a pipe";
  const std::string name = " " + printable(shell_quoted(path));
  const uid_t own = ::geteuid();
  if (file.st_uid != own && file.st_uid != 0)
    return "it belongs to user " + std::to_string(file.st_uid) + ", who can change it: chown " +
           std::to_string(own) + name + " (as root)";
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) == 0) return "";
  std::array<char, 8> mode{};
  (void)std::snprintf(mode.data(), mode.size(), "%04o", file.st_mode & 07777U);
  return "others may use it (mode " + std::string(mode.data()) + "): chmod 600" + name;
}

Result<std::string> content(const std::string& path) {
  const auto failed = [](int error) {
    const std::error_code code(error, std::generic_category());
    return Error(code, code.message());
  };
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return failed(errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return failed(errno);
  if (const std::string weak = weakness(about, path); !weak.empty())
    return Error(std::make_error_code(std::errc::permission_denied), weak);
  // More than the longest token with its newline is an error, however long it is.
  std::string text(Token::kLongest + 2, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::optional<Result<Token>> take_token(char** environment, std::string_view variable) {
  std::optional<std::string> found;
  char** kept = environment;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (!text.starts_with(variable) || !text.substr(variable.size()).starts_with('=')) {
      *kept++ = *entry;
      continue;
    }
    text.remove_prefix(variable.size() + 1);
    if (!found) found = text;
    ::explicit_bzero(*entry, variable.size() + 1 + text.size());
  }
  *kept = nullptr;
  if (!found) return std::nullopt;
  auto token = Token::from(std::move(*found));
  if (!token)
    return Error(token.error().code(), std::string(variable) + ": " + token.error().what());
  return token;
}

Result<Token> read_token(const std::string& path, std::chrono::milliseconds limit) {
  auto answer = ask_files<Result<std::string>>(limit, [path] {
    about_to("read it to its end");
    return content(path);
  });
  auto text = answer ? std::move(*answer) : Result<std::string>(answer.error());
  auto token = text ? Token::from(std::move(*text)) : Result<Token>(text.error());
  if (!token) return Error(token.error().code(), as_name(path) + ": " + token.error().what());
  return token;
}

Result<std::optional<Token>> given_token(std::optional<Result<Token>> variable,
                                         const std::string& file) {
  if (!variable && (file.empty() || file == kNoTokenFile)) return std::optional<Token>();
  auto token = variable ? std::move(*variable) : read_token(file);
  if (token) return std::optional(std::move(*token));
  return Error(token.error().code(), (variable ? "" : "--token-file ") + token.error().what());
}

}  // namespace drun::secure
