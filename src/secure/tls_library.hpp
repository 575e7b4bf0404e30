// OpenSSL, found at run time: drun starts without it, and needs it only for a job with a token or
// with certificates.
#pragma once

#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "drun/base/result.hpp"

namespace drun::secure {

// The functions that are used; libssl.so.3 has them all since 3.0.
struct TlsLibrary {
  decltype(&::OPENSSL_init_ssl) init = nullptr;
  decltype(&::TLS_method) method = nullptr;
  decltype(&::SSL_CTX_new) context_new = nullptr;
  decltype(&::SSL_CTX_free) context_free = nullptr;
  decltype(&::SSL_CTX_ctrl) context_ctrl = nullptr;
  decltype(&::SSL_CTX_set_options) context_set_options = nullptr;
  decltype(&::SSL_CTX_set_ciphersuites) context_set_ciphersuites = nullptr;
  decltype(&::SSL_CTX_set_num_tickets) context_set_num_tickets = nullptr;
  decltype(&::SSL_set_verify) ssl_set_verify = nullptr;
  decltype(&::SSL_CTX_set_verify) context_set_verify = nullptr;
  decltype(&::SSL_CTX_use_certificate) context_use_certificate = nullptr;
  decltype(&::SSL_CTX_use_PrivateKey) context_use_key = nullptr;
  decltype(&::SSL_CTX_get_cert_store) context_authorities = nullptr;
  decltype(&::SSL_CTX_set_ex_data) context_set_data = nullptr;
  decltype(&::SSL_CTX_get_ex_data) context_data = nullptr;
  decltype(&::SSL_CTX_set_psk_use_session_callback) context_set_use_psk = nullptr;
  decltype(&::SSL_CTX_set_psk_find_session_callback) context_set_find_psk = nullptr;
  decltype(&::SSL_new) ssl_new = nullptr;
  decltype(&::SSL_free) ssl_free = nullptr;
  decltype(&::SSL_get_SSL_CTX) ssl_context = nullptr;
  decltype(&::SSL_set_ex_data) ssl_set_data = nullptr;
  decltype(&::SSL_get_ex_data) ssl_data = nullptr;
  decltype(&::SSL_set_bio) ssl_set_bio = nullptr;
  decltype(&::SSL_set_connect_state) ssl_set_connect_state = nullptr;
  decltype(&::SSL_set_accept_state) ssl_set_accept_state = nullptr;
  decltype(&::SSL_do_handshake) ssl_do_handshake = nullptr;
  decltype(&::SSL_is_init_finished) ssl_is_init_finished = nullptr;
  decltype(&::SSL_session_reused) ssl_session_reused = nullptr;
  decltype(&::SSL_get_verify_result) ssl_verify_result = nullptr;
  decltype(&::SSL_get0_peer_certificate) ssl_peer_certificate = nullptr;
  decltype(&::SSL_read_ex) ssl_read = nullptr;
  decltype(&::SSL_write_ex) ssl_write = nullptr;
  decltype(&::SSL_get_error) ssl_get_error = nullptr;
  decltype(&::SSL_CIPHER_find) cipher_find = nullptr;
  decltype(&::SSL_SESSION_new) session_new = nullptr;
  decltype(&::SSL_SESSION_free) session_free = nullptr;
  decltype(&::SSL_SESSION_set1_master_key) session_set_key = nullptr;
  decltype(&::SSL_SESSION_set_cipher) session_set_cipher = nullptr;
  decltype(&::SSL_SESSION_set_protocol_version) session_set_version = nullptr;
  decltype(&::BIO_new) bio_new = nullptr;
  decltype(&::BIO_s_mem) bio_memory = nullptr;
  decltype(&::BIO_new_mem_buf) bio_of = nullptr;
  decltype(&::BIO_free) bio_free = nullptr;
  decltype(&::BIO_read_ex) bio_read = nullptr;
  decltype(&::BIO_write_ex) bio_write = nullptr;
  decltype(&::ERR_clear_error) clear_errors = nullptr;
  decltype(&::ERR_peek_error) peek_error = nullptr;
  decltype(&::ERR_peek_error_all) peek_error_all = nullptr;
  decltype(&::ERR_peek_last_error) peek_last_error = nullptr;
  decltype(&::PEM_read_bio_X509) read_certificate = nullptr;
  decltype(&::PEM_read_bio_PrivateKey) read_key = nullptr;
  decltype(&::X509_free) certificate_free = nullptr;
  decltype(&::EVP_PKEY_free) key_free = nullptr;
  decltype(&::X509_STORE_add_cert) add_authority = nullptr;
  decltype(&::X509_STORE_set_flags) set_authority_flags = nullptr;
  decltype(&::EVP_sha256) sha256 = nullptr;
  decltype(&::HMAC) hmac = nullptr;
};

// Loads it at the first call. The error says what to install. Any thread.
[[nodiscard]] const Result<TlsLibrary>& tls_library();

}  // namespace drun::secure
