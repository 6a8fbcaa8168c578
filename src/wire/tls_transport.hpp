#pragma once
#include <openssl/ssl.h>

#include <memory>

#include "wire/tcp.hpp"

namespace redlease {
inline namespace v0 {

// False once OpenSSL has cleaned up after itself at exit, which a static of the program may outlive: then every call
// into it would crash.
inline bool openssl_lives() noexcept { return ::OPENSSL_init_ssl(0, nullptr) == 1; }

// Of errors that OpenSSL gave a reason for; the value is packed as ERR_get_error packs it.
const std::error_category& tls_category();

// Takes the oldest error and leaves the thread's queue empty, as others expect to find it.
std::error_code take_openssl_error();

struct OpensslFree {
  void operator()(SSL* p) const;
  void operator()(SSL_CTX* p) const;
  void operator()(BIO* p) const;
};
using TlsSession = std::unique_ptr<SSL, OpensslFree>;

// OpenSSL reads and writes memory only; the socket is ours alone.
class TlsTransport final : public Transport {
 public:
  TlsTransport(OwnedFd fd, TlsSession session) noexcept
      : socket_(std::move(fd)),
        ssl_(std::move(session)),
        in_(::SSL_get_rbio(ssl_.get())),
        out_(::SSL_get_wbio(ssl_.get())) {}

  Io handshake(const Limits&) noexcept;
  // Whether the other end has sent anything at all.
  bool heard() const noexcept { return heard_; }
  // X509_V_OK or why its certificate was refused.
  long verdict() const noexcept { return ::SSL_get_verify_result(ssl_.get()); }

  Io write(std::string_view bytes, const Limits&) noexcept override;
  Io read(std::span<char> into, const Limits&) noexcept override;
  bool quiet() noexcept override;
  int descriptor() const noexcept override { return socket_.descriptor(); }

 private:
  Io flush(const Limits&) noexcept;
  Io fill(const Limits&) noexcept;
  Io broken(int ssl_error) noexcept;

  SocketTransport socket_;
  TlsSession ssl_;
  BIO* in_;                 // what came from the socket, encrypted
  BIO* out_;                // what is to go there
  std::size_t flushed_{0};  // of what out_ holds, taken by the kernel
  bool heard_{false};
};

}  // namespace v0
}  // namespace redlease
