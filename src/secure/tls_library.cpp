#include "secure/tls_library.hpp"

#include "base/loaded_library.hpp"

namespace drun::secure {
namespace {

Result<TlsLibrary> load() {
  TlsLibrary tls;
  LoadedLibrary file({"libssl.so.3", "a job with a token or with certificates", "3.0", "libssl3"});
  file.need("OPENSSL_init_ssl", tls.init);
  file.need("TLS_method", tls.method);
  file.need("SSL_CTX_new", tls.context_new);
  file.need("SSL_CTX_free", tls.context_free);
  file.need("SSL_CTX_ctrl", tls.context_ctrl);
  file.need("SSL_CTX_set_options", tls.context_set_options);
  file.need("SSL_CTX_set_ciphersuites", tls.context_set_ciphersuites);
  file.need("SSL_CTX_set_num_tickets", tls.context_set_num_tickets);
  file.need("SSL_set_verify", tls.ssl_set_verify);
  file.need("SSL_CTX_set_verify", tls.context_set_verify);
  file.need("SSL_CTX_use_certificate", tls.context_use_certificate);
  file.need("SSL_CTX_use_PrivateKey", tls.context_use_key);
  file.need("SSL_CTX_get_cert_store", tls.context_authorities);
  file.need("SSL_CTX_set_ex_data", tls.context_set_data);
  file.need("SSL_CTX_get_ex_data", tls.context_data);
  file.need("SSL_CTX_set_psk_use_session_callback", tls.context_set_use_psk);
  file.need("SSL_CTX_set_psk_find_session_callback", tls.context_set_find_psk);
  file.need("SSL_new", tls.ssl_new);
  file.need("SSL_free", tls.ssl_free);
  file.need("SSL_get_SSL_CTX", tls.ssl_context);
  file.need("SSL_set_ex_data", tls.ssl_set_data);
  file.need("SSL_get_ex_data", tls.ssl_data);
  file.need("SSL_set_bio", tls.ssl_set_bio);
  file.need("SSL_set_connect_state", tls.ssl_set_connect_state);
  file.need("SSL_set_accept_state", tls.ssl_set_accept_state);
  file.need("SSL_do_handshake", tls.ssl_do_handshake);
  file.need("SSL_is_init_finished", tls.ssl_is_init_finished);
  file.need("SSL_session_reused", tls.ssl_session_reused);
  file.need("SSL_get_verify_result", tls.ssl_verify_result);
  file.need("SSL_get0_peer_certificate", tls.ssl_peer_certificate);
  file.need("SSL_read_ex", tls.ssl_read);
  file.need("SSL_write_ex", tls.ssl_write);
  file.need("SSL_get_error", tls.ssl_get_error);
  file.need("SSL_CIPHER_find", tls.cipher_find);
  file.need("SSL_SESSION_new", tls.session_new);
  file.need("SSL_SESSION_free", tls.session_free);
  file.need("SSL_SESSION_set1_master_key", tls.session_set_key);
  file.need("SSL_SESSION_set_cipher", tls.session_set_cipher);
  file.need("SSL_SESSION_set_protocol_version", tls.session_set_version);
  file.need("BIO_new", tls.bio_new);
  file.need("BIO_s_mem", tls.bio_memory);
  file.need("BIO_new_mem_buf", tls.bio_of);
  file.need("BIO_free", tls.bio_free);
  file.need("BIO_read_ex", tls.bio_read);
  file.need("BIO_write_ex", tls.bio_write);
  file.need("ERR_clear_error", tls.clear_errors);
  file.need("ERR_peek_error", tls.peek_error);
  file.need("ERR_peek_error_all", tls.peek_error_all);
  file.need("ERR_peek_last_error", tls.peek_last_error);
  file.need("PEM_read_bio_X509", tls.read_certificate);
  file.need("PEM_read_bio_PrivateKey", tls.read_key);
  file.need("X509_free", tls.certificate_free);
  file.need("EVP_PKEY_free", tls.key_free);
  file.need("X509_STORE_add_cert", tls.add_authority);
  file.need("X509_STORE_set_flags", tls.set_authority_flags);
  file.need("EVP_sha256", tls.sha256);
  file.need("HMAC", tls.hmac);
  if (const Status status = file.status(); !status) return status.error();
  // The machine's own settings could forbid what both sides need. No handler at exit: processes
  // that are forked later end in their own ways.
  if (tls.init(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1)
    return file.too_old();
  return tls;
}

}  // namespace

const Result<TlsLibrary>& tls_library() {
  static const Result<TlsLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace drun::secure
