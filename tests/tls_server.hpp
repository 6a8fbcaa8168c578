#pragma once
// A TLS server on 127.0.0.1 that sends back what it gets.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "certificates.hpp"
#include "listener.hpp"

namespace redlease {
inline namespace v0 {

class TlsServer {
 public:
  struct Setup {
    int version{0};         // the only one; 0: any
    std::string client_ca;  // a client certificate is required, of this authority
  };

  explicit TlsServer(const Identity& identity) : TlsServer(identity, Setup{0, ""}) {}
  TlsServer(const Identity& identity, const Setup& setup)
      : context_(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free) {
    SSL_CTX* raw = context_.get();
    check(::SSL_CTX_use_certificate_file(raw, identity.cert_file.c_str(), SSL_FILETYPE_PEM));
    check(::SSL_CTX_use_PrivateKey_file(raw, identity.key_file.c_str(), SSL_FILETYPE_PEM));
    check(static_cast<int>(SSL_CTX_set_min_proto_version(raw, setup.version)));
    check(static_cast<int>(SSL_CTX_set_max_proto_version(raw, setup.version)));
    if (!setup.client_ca.empty()) {
      check(::SSL_CTX_load_verify_locations(raw, setup.client_ca.c_str(), nullptr));
      ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() {
    thread_.request_stop();
    ::shutdown(listener_.fd(), SHUT_RDWR);
    const std::lock_guard lock(mutex_);
    if (peer_ >= 0) ::shutdown(peer_, SHUT_RDWR);
  }

  std::string url(const std::string& host = "127.0.0.1") const {
    return "rediss://" + host + ":" + std::to_string(listener_.port());
  }
  std::string name_asked_for() const {
    const std::lock_guard lock(mutex_);
    return sni_;
  }
  int handshakes() const { return handshakes_; }
  int updates() const { return updates_; }

 private:
  static void check(int result) {
    if (result != 1) throw std::runtime_error("the test's TLS server could not be set up");
  }

  void serve(const std::stop_token& stop) {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);  // OpenSSL writes to this end itself
    while (!stop.stop_requested()) {
      const OwnedFd peer = listener_.accept();
      if (peer.get() < 0) continue;
      {
        const std::lock_guard lock(mutex_);
        if (stop.stop_requested()) return;
        peer_ = peer.get();
      }
      talk(peer.get());
      const std::lock_guard lock(mutex_);
      peer_ = -1;
    }
  }

  // Echoes, but for two commands: "UPDATE" asks for new keys in both directions, "BYE" ends it in order.
  void talk(int fd) {
    const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl(::SSL_new(context_.get()), ::SSL_free);
    ::SSL_set_fd(ssl.get(), fd);
    if (::SSL_accept(ssl.get()) == 1) {
      {
        const std::lock_guard lock(mutex_);
        const char* name = ::SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name);
        sni_ = name != nullptr ? name : "";
      }
      ++handshakes_;
      char bytes[16 * 1024];
      for (int n = 0; (n = ::SSL_read(ssl.get(), bytes, sizeof bytes)) > 0;) {
        const std::string_view got(bytes, static_cast<std::size_t>(n));
        if (got == "BYE") {
          ::SSL_shutdown(ssl.get());
          break;
        }
        if (got == "UPDATE") {
          ::SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED);
          ::SSL_do_handshake(ssl.get());
          ++updates_;
          continue;
        }
        if (::SSL_write(ssl.get(), bytes, n) != n) break;
      }
    }
    ::ERR_clear_error();
  }

  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  Listener listener_;
  mutable std::mutex mutex_;
  int peer_{-1};     // under mutex_
  std::string sni_;  // under mutex_
  std::atomic<int> handshakes_{0};
  std::atomic<int> updates_{0};
  std::jthread thread_;
};

}  // namespace v0
}  // namespace redlease
