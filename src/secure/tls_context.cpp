#include "secure/tls_context.hpp"

#include <string.h>

#include <array>
#include <cstddef>
#include <functional>
#include <system_error>
#include <utility>

#include "base/hex.hpp"
#include "secure/tls_library.hpp"

namespace drun::secure {
namespace {

constexpr std::size_t kKeyBytes = TlsContext::kKeyBytes;
// Other uses of the token get other keys, and no key tells anything of another one.
constexpr std::string_view kExtractLabel = "drun tls psk 1";
constexpr std::string_view kExpandLabel = "agent connection\1";
constexpr std::string_view kPageLabel = "drun status page 1";
constexpr std::string_view kCertificateLabel = "key of a certificate\1";
constexpr std::string_view kJobsLabel = "tokens of jobs\1";
constexpr std::string_view kIdentity = "drun";
constexpr std::string_view kJobIdentity = "drun job ";
// In front of what has a certificate for of_secret(); no key begins so.
constexpr std::string_view kCertificateSecret{"certificate\0", 12};
constexpr std::array<unsigned char, 2> kCipher{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hmac(const TlsLibrary& tls, std::string_view key, std::string_view text) {
  std::string result(kKeyBytes, '\0');
  tls.hmac(tls.sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(),
           reinterpret_cast<unsigned char*>(result.data()), nullptr);
  return result;
}

// HKDF with SHA-256 (RFC 5869): one step of each kind gives 32 bytes.
std::string derived(const TlsLibrary& tls, std::string_view token, std::string_view label) {
  std::string extracted = hmac(tls, kExtractLabel, token);
  std::string key = hmac(tls, extracted, label);
  wipe(extracted);
  return key;
}

std::string text_of_job_token(const TlsLibrary& tls, std::string_view jobs_secret,
                              std::string_view job) {
  std::string proof = hmac(tls, jobs_secret, job);
  std::string text(kJobTokenStart);
  // The secret is written once, where it is to stay.
  text.reserve(text.size() + job.size() + 1 + 2 * proof.size());
  text.append(job) += ':';
  append_hex(text, proof);
  wipe(proof);
  return text;
}

// Null: there is no memory for it.
SSL_SESSION* session_of(SSL* ssl, const std::string& key) {
  const TlsLibrary& tls = *tls_library();
  SSL_SESSION* session = tls.session_new();
  if (session == nullptr) return nullptr;
  if (tls.session_set_key(session, bytes_of(key), key.size()) == 1 &&
      tls.session_set_cipher(session, tls.cipher_find(ssl, kCipher.data())) == 1 &&
      tls.session_set_version(session, TLS1_3_VERSION) == 1)
    return session;
  tls.session_free(session);
  return nullptr;
}

const TlsContext& context_of(const SSL* ssl) {
  const TlsLibrary& tls = *tls_library();
  return *static_cast<const TlsContext*>(tls.context_data(tls.ssl_context(ssl), 0));
}

Error unusable() {
  return Error(
      std::make_error_code(std::errc::not_supported),
      "OpenSSL's library libssl.so.3 here cannot do TLS 1.3 with a shared key or a certificate");
}

Error wrong(const std::string& what) {
  return Error(std::make_error_code(std::errc::invalid_argument), what);
}

// Nobody is asked for a passphrase.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

using Pem = std::unique_ptr<BIO, int (*)(BIO*)>;

Pem pem_of(const TlsLibrary& tls, const std::string& text) {
  return {tls.bio_of(text.data(), static_cast<int>(text.size())), tls.bio_free};
}

// Gives all certificates of a text to `take`, in their order. The error says of the file of `flag`
// that there is none in it, or one that is damaged or not taken.
Status each_certificate(const TlsLibrary& tls, const char* flag, const std::string& text,
                        const std::function<bool(X509*)>& take) {
  const Pem pem = pem_of(tls, text);
  int count = 0;
  tls.clear_errors();
  while (X509* one = tls.read_certificate(pem.get(), nullptr, no_passphrase, nullptr)) {
    const bool taken = take(one);
    tls.certificate_free(one);
    ++count;
    if (!taken)
      return wrong(std::string(flag) + ": its certificate " + std::to_string(count) +
                   " cannot be used");
  }
  const bool at_end = ERR_GET_REASON(tls.peek_last_error()) == PEM_R_NO_START_LINE;
  tls.clear_errors();
  if (!at_end)
    return wrong(std::string(flag) + ": its certificate " + std::to_string(count + 1) +
                 " is damaged");
  if (count == 0) return wrong(std::string(flag) + ": there is no certificate in PEM in it");
  return Done{};
}

// What OpenSSL says of the certificate that it did not take: "certificate has expired".
std::string reason_of_refusal(const TlsLibrary& tls) {
  const char* data = nullptr;
  int flags = 0;
  tls.peek_error_all(nullptr, nullptr, nullptr, &data, &flags);
  constexpr std::string_view kBefore = "Verify error:";
  std::string_view text = data != nullptr && (flags & ERR_TXT_STRING) != 0 ? data : "";
  if (text.starts_with(kBefore)) text.remove_prefix(kBefore.size());
  return text.empty() ? "it is not one of them" : std::string(text);
}

}  // namespace

Status can_speak_tls() {
  const auto& library = tls_library();
  return library ? Status(Done{}) : Status(library.error());
}

TlsContext::~TlsContext() {
  library_.context_free(context_);
  wipe(key_);
  wipe(jobs_secret_);
  wipe(handed_over_);
}

int TlsContext::show_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                         SSL_SESSION** session) {
  const TlsContext& own = context_of(ssl);
  *session = session_of(ssl, own.key_);
  *identity = bytes_of(own.identity_);
  *size = own.identity_.size();
  return *session != nullptr ? 1 : 0;
}

// Without a key, as for a stranger's identity, OpenSSL asks for a certificate, which there is not.
int TlsContext::find_key(SSL* ssl, const unsigned char* identity, std::size_t size,
                         SSL_SESSION** session) {
  *session = nullptr;
  auto claim = context_of(ssl).claim_of({reinterpret_cast<const char*>(identity), size});
  if (!claim) return 1;
  *session = session_of(ssl, claim->key);
  wipe(claim->key);
  // It counts once the handshake has proved it.
  static_cast<std::string*>(tls_library()->ssl_data(ssl, 0))->swap(claim->job);
  return *session != nullptr ? 1 : 0;
}

// Whoever has a job's token of another store is told that he has another token, as all others are:
// his proof does not fit this key.
std::optional<TlsContext::Claim> TlsContext::claim_of(std::string_view identity) const {
  if (identity == identity_ || identity == kIdentity) return Claim{key_, ""};
  if (!identity.starts_with(kJobIdentity)) return std::nullopt;
  if (jobs_secret_.empty()) return Claim{key_, ""};
  const std::string_view job = identity.substr(kJobIdentity.size());
  std::string token = text_of_job_token(library_, jobs_secret_, job);
  Claim claim{derived(library_, token, kExpandLabel), std::string(job)};
  wipe(token);
  return claim;
}

Result<Token> TlsContext::job_token(std::string_view job) const {
  if (jobs_secret_.empty() || job.empty())
    return Error(std::make_error_code(std::errc::invalid_argument),
                 "it is not a store's token, from which those of jobs follow");
  return Token::from(text_of_job_token(library_, jobs_secret_, job));
}

const std::string& TlsContext::secret() const {
  return handed_over_.empty() ? key_ : handed_over_;
}

std::string TlsContext::page_key() const {
  std::string of_key =
      has_certificate() ? derived(library_, handed_over_, kCertificateLabel) : key_;
  const std::string bytes = hmac(library_, of_key, kPageLabel);
  wipe(of_key);
  std::string text;
  append_hex(text, bytes);
  return text;
}

// What both kinds have in common.
Result<std::shared_ptr<TlsContext>> TlsContext::begin() {
  const auto& library = tls_library();
  if (!library) return library.error();
  const TlsLibrary& tls = *library;
  SSL_CTX* made = tls.context_new(tls.method());
  if (made == nullptr) return unusable();
  std::shared_ptr<TlsContext> context(new TlsContext(tls, made));
  tls.context_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  // Buffers are there only while there is something in them.
  tls.context_ctrl(made, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);
  tls.context_ctrl(made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  const bool is_good =
      tls.context_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      tls.context_ctrl(made, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      tls.context_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ==
          1 &&
      tls.context_set_num_tickets(made, 0) == 1;
  if (!is_good) return unusable();
  return context;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::with_key(std::string key,
                                                               std::string identity,
                                                               std::string jobs_secret) {
  auto context = begin();
  if (!context) {
    wipe(key);
    wipe(jobs_secret);
    return context.error();
  }
  TlsContext& made = **context;
  made.key_ = std::move(key);
  if (identity != kIdentity) {
    made.handed_over_.reserve(made.key_.size() + identity.size());  // written once
    made.handed_over_.append(made.key_).append(identity);
  }
  made.identity_ = std::move(identity);
  made.jobs_secret_ = std::move(jobs_secret);
  const TlsLibrary& tls = *tls_library();
  tls.context_set_data(made.context_, 0, &made);
  tls.context_set_use_psk(made.context_, show_key);
  tls.context_set_find_psk(made.context_, find_key);
  return std::shared_ptr<const TlsContext>(std::move(*context));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of(const Token& token) {
  const auto& library = tls_library();
  if (!library) return library.error();
  const auto job = token.job();
  return with_key(derived(*library, token.text_, kExpandLabel),
                  job ? std::string(kJobIdentity).append(*job) : std::string(kIdentity),
                  job ? std::string() : derived(*library, token.text_, kJobsLabel));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of(const Certificate& certificate) {
  auto context = begin();
  if (!context) return context.error();
  (*context)->has_certificate_ = true;
  std::string all = certificate.together();
  (*context)->handed_over_ = std::string(kCertificateSecret).append(all);
  wipe(all);
  if (const Status used = (*context)->use(certificate); !used) return used.error();
  return std::shared_ptr<const TlsContext>(std::move(*context));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of_secret(std::string_view secret) {
  if (secret.starts_with(kCertificateSecret))
    return of(Certificate::from(secret.substr(kCertificateSecret.size())));
  if (secret.size() < kKeyBytes) return wrong("it is no secret of drun's");
  const std::string_view identity = secret.substr(kKeyBytes);
  return with_key(std::string(secret.substr(0, kKeyBytes)),
                  std::string(identity.empty() ? kIdentity : identity), "");
}

Status TlsContext::use(const Certificate& given) {
  const TlsLibrary& tls = library_;
  X509_STORE* trusted = tls.context_authorities(context_);
  // The authority of a team is enough, without the one above it that has signed it.
  tls.set_authority_flags(trusted, X509_V_FLAG_PARTIAL_CHAIN);
  if (const Status read =
          each_certificate(tls, "--tls-ca", given.authorities,
                           [&](X509* one) { return tls.add_authority(trusted, one) == 1; });
      !read)
    return read;
  bool is_first = true;
  const Status read = each_certificate(tls, "--tls-cert", given.certificate, [&](X509* one) {
    return std::exchange(is_first, false)
               ? tls.context_use_certificate(context_, one) == 1
               : tls.context_ctrl(context_, SSL_CTRL_CHAIN_CERT, 1, one) == 1;
  });
  if (!read) return read;
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      tls.read_key(pem_of(tls, given.key).get(), nullptr, no_passphrase, nullptr), tls.key_free);
  if (key == nullptr)
    return wrong("--tls-key: there is no key in PEM in it, or it has a passphrase");
  if (tls.context_use_key(context_, key.get()) != 1)
    return wrong("--tls-key: it is not the key of the certificate of --tls-cert");
  tls.clear_errors();
  if (tls.context_ctrl(context_, SSL_CTRL_BUILD_CERT_CHAIN,
                       SSL_BUILD_CHAIN_FLAG_UNTRUSTED | SSL_BUILD_CHAIN_FLAG_NO_ROOT, nullptr) != 1)
    return wrong("--tls-cert: the authorities of --tls-ca do not vouch for it: " +
                 reason_of_refusal(tls));
  tls.context_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return Done{};
}

}  // namespace drun::secure
