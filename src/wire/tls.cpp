#include "wire/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <string>
#include <utility>

#include "concat.hpp"
#include "wire/tls_transport.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using Context = std::unique_ptr<SSL_CTX, OpensslFree>;

Error failure(Errc code, const Endpoint& endpoint, const std::string& why) {
  return {code, concat({"no TLS connection to ", endpoint.display, ": ", why})};
}

Error setup_failed(const Endpoint& endpoint) {
  return failure(Errc::tls_failed, endpoint, "OpenSSL could not be set up: " + take_openssl_error().message());
}

Result<Context> make_context(const Endpoint& endpoint) {
  const TlsOptions& options = endpoint.tls;
  const auto unusable = [&](const std::string& what, const std::string& file) {
    return failure(
        Errc::tls_failed, endpoint,
        concat({what, " '", file, "' cannot be used: ", take_openssl_error().message(), "; nothing was sent"}));
  };
  ::ERR_clear_error();
  Context context(::SSL_CTX_new(::TLS_client_method()));
  SSL_CTX* raw = context.get();
  if (raw == nullptr || ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1) return setup_failed(endpoint);
  ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_verify(raw, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  // Else OpenSSL asks the terminal for the password of an encrypted key.
  ::SSL_CTX_set_default_passwd_cb_userdata(raw, const_cast<char*>(""));
  if (options.verify) {
    if (options.ca_file.empty()) {
      if (::SSL_CTX_set_default_verify_paths(raw) != 1) return setup_failed(endpoint);
    } else if (::SSL_CTX_load_verify_locations(raw, options.ca_file.c_str(), nullptr) != 1) {
      return unusable("the CA file", options.ca_file);
    }
  }
  if (!options.cert_file.empty() && ::SSL_CTX_use_certificate_chain_file(raw, options.cert_file.c_str()) != 1) {
    return unusable("the certificate file", options.cert_file);
  }
  if (!options.key_file.empty() &&
      ::SSL_CTX_use_PrivateKey_file(raw, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable("the key file (which must be PEM, unencrypted, and belong to the certificate)", options.key_file);
  }
  return context;
}

const std::string& expected_name(const Endpoint& endpoint) {
  return endpoint.tls.server_name.empty() ? endpoint.host : endpoint.tls.server_name;
}

Result<TlsSession> make_session(SSL_CTX* context, const Endpoint& endpoint) {
  TlsSession session(::SSL_new(context));
  std::unique_ptr<BIO, OpensslFree> in(::BIO_new(::BIO_s_mem()));
  std::unique_ptr<BIO, OpensslFree> out(::BIO_new(::BIO_s_mem()));
  if (session == nullptr || in == nullptr || out == nullptr) return setup_failed(endpoint);
  SSL* raw = session.get();
  ::SSL_set_bio(raw, in.release(), out.release());
  ::SSL_set_connect_state(raw);

  const std::string name = expected_name(endpoint);
  const std::string literal = name.substr(0, name.find('%'));  // no zone in certificates
  unsigned char ignored[sizeof(in6_addr)];
  const bool address =
      ::inet_pton(AF_INET, name.c_str(), ignored) == 1 || ::inet_pton(AF_INET6, literal.c_str(), ignored) == 1;
  if (!address && ::SSL_set_tlsext_host_name(raw, name.c_str()) != 1) return setup_failed(endpoint);
  if (!endpoint.tls.verify) return session;
  ::SSL_set_hostflags(raw, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int set = address ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(raw), literal.c_str())
                          : ::SSL_set1_host(raw, name.c_str());
  if (set != 1) return setup_failed(endpoint);
  return session;
}

Error explained(const Io& end, const TlsTransport& transport, const Endpoint& endpoint) {
  const std::string nothing = "; no command was sent";
  if (end.status == IoStatus::cancelled)
    return failure(Errc::cancelled, endpoint, "stopped in the handshake" + nothing);
  if (end.status == IoStatus::timed_out) {
    return failure(Errc::timed_out, endpoint,
                   transport.heard() ? "the handshake did not end within the limit" + nothing
                                     : "no answer to the handshake within the limit" + nothing +
                                           ". Does the server speak TLS on this port?");
  }
  if (const long verdict = transport.verdict(); endpoint.tls.verify && verdict != X509_V_OK) {
    std::string why = std::string("the server's certificate was refused: ") + ::X509_verify_cert_error_string(verdict);
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      why += ", it does not name '" + expected_name(endpoint) + "' (TlsOptions::server_name says what to expect)";
    } else {
      why += " (trusted is " +
             (endpoint.tls.ca_file.empty() ? "the system's store" : "'" + endpoint.tls.ca_file + "'") +
             ", TlsOptions::ca_file)";
    }
    return failure(Errc::tls_failed, endpoint, why + nothing);
  }
  const int reason = end.error.category() == tls_category()
                         ? ERR_GET_REASON(static_cast<unsigned long>(static_cast<unsigned>(end.error.value())))
                         : 0;
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_UNEXPECTED_MESSAGE) {
    return failure(Errc::tls_failed, endpoint, "the server does not seem to speak TLS on this port" + nothing);
  }
  if (end.status == IoStatus::closed || end.error == std::errc::connection_reset ||
      end.error == std::errc::broken_pipe) {
    return failure(Errc::connection_closed, endpoint,
                   transport.heard() ? "the server closed it in the handshake" + nothing
                                     : "the server closed it without a word, and does not seem to speak TLS on this "
                                       "port" +
                                           nothing);
  }
  const bool by_tls = end.error.category() == tls_category();  // if not, the network has failed, which may pass
  return failure(by_tls ? Errc::tls_failed : Errc::connection_closed, endpoint,
                 "the handshake failed: " + end.error.message() + nothing);
}

}  // namespace

Result<std::unique_ptr<Transport>> connect_tls(OwnedFd fd, const Endpoint& endpoint, const Limits& limits) {
  if (!openssl_lives()) return failure(Errc::tls_failed, endpoint, "OpenSSL is gone, since the process is exiting");
  auto context = make_context(endpoint);
  if (!context.has_value()) return context.error();
  auto session = make_session(context.value().get(), endpoint);
  if (!session.has_value()) return session.error();
  auto transport = std::make_unique<TlsTransport>(std::move(fd), std::move(session).value());
  if (const Io end = transport->handshake(limits); end.status != IoStatus::ok) {
    return explained(end, *transport, endpoint);
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace v0
}  // namespace redlease
