// A certificate, its key and the authorities that are trusted: what a site with an authority of its
// own has instead of a token.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/file_worker.hpp"
#include "drun/base/result.hpp"
#include "secure/token.hpp"

namespace drun::secure {

// Names of files in PEM, which all three are given, or none.
struct CertificateFiles {
  std::string certificate{};  // perhaps with those that lead to an authority behind it
  std::string key{};          // without a passphrase
  std::string authorities{};  // who has a certificate of one of them takes part

  [[nodiscard]] bool any() const {
    return !certificate.empty() || !key.empty() || !authorities.empty();
  }
  // The error is a sentence that names the flag which is missing.
  [[nodiscard]] Status complete() const;
};

// What they hold, not looked at yet. The key is overwritten when it goes.
struct Certificate {
  std::string certificate{};
  std::string key{};
  std::string authorities{};

  Certificate() = default;
  Certificate(Certificate&&) noexcept = default;
  Certificate(const Certificate&) = delete;
  Certificate& operator=(Certificate&&) = delete;
  ~Certificate() { wipe(key); }

  // In one piece, which is as secret as the key; from() undoes it.
  [[nodiscard]] std::string together() const;
  [[nodiscard]] static Certificate from(std::string_view together);
};

// Nobody but this user and root, and for a file of root's its group, may have access to the key.
// Comes back after `limit` for each, even if the file system hangs. The error is a sentence that
// names flag and file.
[[nodiscard]] Result<Certificate> read_certificate(const CertificateFiles& files,
                                                   std::chrono::milliseconds limit = kFilesLimit);

}  // namespace drun::secure
