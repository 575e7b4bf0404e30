#include "secure/certificate.hpp"

#include <array>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "secure/secret_file.hpp"

namespace drun::secure {
namespace {

// A certificate with its chain has some 5 KB; a system's list of authorities 250.
constexpr std::size_t kMost = 1'024 * 1'024;
// PEM is text.
constexpr char kBetween = '\0';

}  // namespace

Status CertificateFiles::complete() const {
  const char* missing = nullptr;
  if (authorities.empty()) missing = "--tls-ca";
  if (key.empty()) missing = "--tls-key";
  if (certificate.empty()) missing = "--tls-cert";
  if (missing == nullptr) return Done{};
  return Error(
      std::make_error_code(std::errc::invalid_argument),
      std::string(missing) + " is missing: --tls-cert, --tls-key and --tls-ca go together");
}

std::string Certificate::together() const {
  std::string text;
  text.reserve(certificate.size() + key.size() + authorities.size() + 2);
  text.append(certificate) += kBetween;
  text.append(key) += kBetween;
  return text.append(authorities);
}

Certificate Certificate::from(std::string_view together) {
  Certificate result;
  std::array<std::string*, 3> parts{&result.certificate, &result.key, &result.authorities};
  for (std::string* part : parts) {
    const auto end = part == parts.back() ? together.npos : together.find(kBetween);
    *part = together.substr(0, end);
    if (end == together.npos) break;
    together.remove_prefix(end + 1);
  }
  return result;
}

Result<Certificate> read_certificate(const CertificateFiles& files,
                                     std::chrono::milliseconds limit) {
  if (const Status complete = files.complete(); !complete) return complete.error();
  Certificate result;
  struct Part {
    const char* flag;
    const std::string& path;
    std::string& text;
    SecretRule rule;
  };
  const SecretRule open_to_all{.most = kMost, .is_public = true};
  const SecretRule secret{.most = kMost, .root_shares = true};
  for (const Part& part : {Part{"--tls-cert", files.certificate, result.certificate, open_to_all},
                           Part{"--tls-key", files.key, result.key, secret},
                           Part{"--tls-ca", files.authorities, result.authorities, open_to_all}}) {
    auto text = read_secret(part.path, part.rule, limit);
    const std::string why = !text                                ? std::string(text.error().what())
                            : text->size() > kMost               ? "it is too long"
                            : text->find(kBetween) != text->npos ? "it is no text, as PEM is"
                                                                 : "";
    if (!why.empty())
      return Error(text ? std::make_error_code(std::errc::invalid_argument) : text.error().code(),
                   std::string(part.flag) + " " + as_name(part.path) + ": " + why);
    part.text = std::move(*text);
  }
  return result;
}

}  // namespace drun::secure
