#include "wire/tls_transport.hpp"

#include <openssl/err.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace redlease {
inline namespace v0 {
namespace {

// Large enough for one record, so that one recv mostly fetches a whole reply.
constexpr std::size_t record_size = 16'384;
using Chunk = char[record_size + 512];

constexpr int openssl_is_gone = -1;

class TlsCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls"; }
  std::string message(int packed) const override {
    if (packed == openssl_is_gone || !openssl_lives()) return "OpenSSL is gone, since the process is exiting";
    const char* reason = ::ERR_reason_error_string(static_cast<unsigned long>(static_cast<unsigned>(packed)));
    return reason != nullptr ? reason : "TLS protocol error";
  }
};

Io at_exit() noexcept { return {0, IoStatus::failed, {openssl_is_gone, tls_category()}}; }

}  // namespace

const std::error_category& tls_category() {
  static const auto* category = new TlsCategory;  // never destroyed: errors may outlive every static
  return *category;
}

std::error_code take_openssl_error() {
  const unsigned long packed = ::ERR_get_error();
  ::ERR_clear_error();
  if (ERR_GET_LIB(packed) == ERR_LIB_SYS) return {ERR_GET_REASON(packed), std::system_category()};
  return {static_cast<int>(packed & 0xffffffffU), tls_category()};
}

void OpensslFree::operator()(SSL* p) const {
  if (openssl_lives()) ::SSL_free(p);
}
void OpensslFree::operator()(SSL_CTX* p) const { ::SSL_CTX_free(p); }
void OpensslFree::operator()(BIO* p) const { ::BIO_free(p); }

Io TlsTransport::flush(const Limits& limits) noexcept {
  char* data = nullptr;
  const long size = BIO_get_mem_data(out_, &data);
  if (size <= 0) return {};
  const Io sent = socket_.write({data + flushed_, static_cast<std::size_t>(size) - flushed_}, limits);
  flushed_ += sent.bytes;
  if (sent.status != IoStatus::ok) return {0, sent.status, sent.error};
  (void)BIO_reset(out_);
  flushed_ = 0;
  return {};
}

Io TlsTransport::fill(const Limits& limits) noexcept {
  Chunk chunk;
  const Io got = socket_.read(chunk, limits);
  if (got.status != IoStatus::ok) return got;
  heard_ = true;
  if (::BIO_write(in_, chunk, static_cast<int>(got.bytes)) != static_cast<int>(got.bytes)) {
    return {0, IoStatus::failed, take_openssl_error()};
  }
  return {};
}

Io TlsTransport::broken(int ssl_error) noexcept {
  if (ssl_error == SSL_ERROR_ZERO_RETURN) {
    ::ERR_clear_error();
    return {0, IoStatus::closed, {}};
  }
  return {0, IoStatus::failed, take_openssl_error()};
}

Io TlsTransport::handshake(const Limits& limits) noexcept {
  for (;;) {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(ssl_.get());
    const int error = ::SSL_get_error(ssl_.get(), result);
    const Io failure = result == 1 || error == SSL_ERROR_WANT_READ ? Io{} : broken(error);
    const Io sent = flush(limits);  // an alert too: the server's log then says why
    if (failure.status != IoStatus::ok) return failure;
    if (sent.status != IoStatus::ok) return sent;
    if (result == 1) return {};
    if (const IoStatus status = over(limits); status != IoStatus::ok) return {0, status, {}};
    if (const Io got = fill(limits); got.status != IoStatus::ok) return got;
  }
}

Io TlsTransport::write(std::string_view bytes, const Limits& limits) noexcept {
  if (!openssl_lives()) return at_exit();
  std::size_t done = 0;
  while (done < bytes.size()) {
    // Before a record is made: one that stays behind would stand between the server and all later ones.
    if (const IoStatus status = over(limits); status != IoStatus::ok) return {done, status, {}};
    const std::size_t size = std::min(bytes.size() - done, record_size);
    ::ERR_clear_error();
    const int result = ::SSL_write(ssl_.get(), bytes.data() + done, static_cast<int>(size));
    if (result <= 0) {
      const Io failure = broken(::SSL_get_error(ssl_.get(), result));
      return {done, failure.status, failure.error};
    }
    if (const Io sent = flush(limits); sent.status != IoStatus::ok) return {done, sent.status, sent.error};
    done += size;
  }
  return {done, IoStatus::ok, {}};
}

Io TlsTransport::read(std::span<char> into, const Limits& limits) noexcept {
  if (!openssl_lives()) return at_exit();
  for (bool filled = false;; filled = true) {
    ::ERR_clear_error();
    const int size = static_cast<int>(std::min<std::size_t>(into.size(), INT32_MAX));
    const int result = ::SSL_read(ssl_.get(), into.data(), size);
    if (result > 0) return {static_cast<std::size_t>(result), IoStatus::ok, {}};
    const int error = ::SSL_get_error(ssl_.get(), result);
    if (error != SSL_ERROR_WANT_READ) return broken(error);
    // An answer to a KeyUpdate, say. The other end may wait for it; if there is no room now, it leaves with the next.
    if (const Io sent = flush(limits); sent.status != IoStatus::ok && sent.status != IoStatus::timed_out) return sent;
    // Records without data that always come just in time must not carry a call past its limits.
    if (const IoStatus status = over(limits); filled && status != IoStatus::ok) return {0, status, {}};
    if (const Io got = fill(limits); got.status != IoStatus::ok) return got;
  }
}

bool TlsTransport::quiet() noexcept {
  if (!openssl_lives()) return false;
  for (;;) {
    // Session tickets and key updates are used up here; their answers leave with the next write.
    char byte{};
    ::ERR_clear_error();
    const int result = ::SSL_peek(ssl_.get(), &byte, 1);
    const int error = ::SSL_get_error(ssl_.get(), result);
    ::ERR_clear_error();
    if (result > 0 || error != SSL_ERROR_WANT_READ) return false;
    Chunk chunk;
    const Io got = socket_.read_now(chunk);
    // Half a record may be the first half of data.
    if (got.status == IoStatus::timed_out) return ::SSL_has_pending(ssl_.get()) == 0;
    if (got.status != IoStatus::ok) return false;
    if (::BIO_write(in_, chunk, static_cast<int>(got.bytes)) != static_cast<int>(got.bytes)) return false;
  }
}

}  // namespace v0
}  // namespace redlease
