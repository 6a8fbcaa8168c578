#include <openssl/err.h>
#include <unistd.h>

#include "redlease/wire/transport.hpp"
#include "tls_server.hpp"
#include "wire/tls.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;

class Tls : public testing::Test {
 protected:
  Endpoint endpoint(const std::string& url) const {
    Endpoint e = parse_endpoint(url);
    e.tls.ca_file = ca_.cert_file;
    return e;
  }

  static std::unique_ptr<Transport> connected(const Endpoint& e) {
    auto result = connect(e, within(10s));
    EXPECT_EQ(::ERR_peek_error(), 0UL) << "OpenSSL's error queue is the whole thread's";
    if (result.has_value()) return std::move(result).value();
    ADD_FAILURE() << result.error().detail;
    return nullptr;
  }

  static std::string refusal(const Endpoint& e, Errc code = Errc::tls_failed, Millis limit = 10s) {
    auto result = connect(e, within(limit));
    EXPECT_EQ(::ERR_peek_error(), 0UL) << "OpenSSL's error queue is the whole thread's";
    if (result.has_value()) {
      ADD_FAILURE() << "connected to " << e.display;
      return {};
    }
    EXPECT_EQ(result.error().code, code) << result.error().detail;
    EXPECT_NE(result.error().detail.find(e.display), std::string::npos) << result.error().detail;
    return result.error().detail;
  }

  static std::string echoed(Transport& transport, const std::string& bytes) {
    const Io sent = transport.write(bytes, within(10s));
    EXPECT_EQ(sent.status, IoStatus::ok) << text(sent);
    EXPECT_EQ(sent.bytes, bytes.size());
    std::string all;
    std::vector<char> room(50'000);
    while (all.size() < bytes.size()) {
      const Io io = transport.read(room, within(10s));
      EXPECT_EQ(io.status, IoStatus::ok) << text(io);
      if (io.status != IoStatus::ok) break;
      all.append(room.data(), io.bytes);
    }
    return all;
  }

  TempDir dir_;
  Identity ca_{dir_.path() + "/ca", {.name = "test authority", .san = "", .authority = true}};
  Identity good_{dir_.path() + "/good", {.name = "good", .san = "DNS:localhost,IP:127.0.0.1"}, &ca_};
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST_F(Tls, TalksInBothVersionsAndTakesTheUrlsAddressForTheName) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsServer server(good_, {.version = version, .client_ca = ""});
    const auto transport = connected(endpoint(server.url()));
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(echoed(*transport, "PING"), "PING");
    EXPECT_EQ(server.name_asked_for(), "") << "an address is no server name";
  }
}

TEST_F(Tls, AsksForTheHostByNameOrForTheOneGiven) {
  const TlsServer server(good_);
  EXPECT_NE(connected(endpoint(server.url("localhost"))), nullptr);
  EXPECT_TRUE(eventually([&] { return server.name_asked_for() == "localhost"; }));

  const Identity other(dir_.path() + "/other", {.name = "o", .san = "DNS:redis.example.org"}, &ca_);
  const TlsServer elsewhere(other);
  Endpoint e = endpoint(elsewhere.url());
  e.tls.server_name = "redis.example.org";
  EXPECT_NE(connected(e), nullptr);
  EXPECT_TRUE(eventually([&] { return elsewhere.name_asked_for() == "redis.example.org"; }));
}

TEST_F(Tls, CarriesMuchInBothDirections) {
  const TlsServer server(good_);
  const auto transport = connected(endpoint(server.url()));
  ASSERT_NE(transport, nullptr);
  std::string much;
  for (int i = 0; i < 30'000; ++i) much += std::to_string(i);
  EXPECT_EQ(echoed(*transport, much), much);
  EXPECT_EQ(echoed(*transport, "x"), "x");
}

TEST_F(Tls, RefusesAnAuthorityItDoesNotKnow) {
  const Identity stranger(dir_.path() + "/stranger", {.name = "stranger", .san = "", .authority = true});
  const TlsServer server(good_);
  Endpoint e = endpoint(server.url());
  e.tls.ca_file = stranger.cert_file;
  const std::string says = refusal(e);
  EXPECT_TRUE(has(says, "unable to get local issuer certificate")) << says;
  EXPECT_TRUE(has(says, "'" + stranger.cert_file + "'")) << says;
  EXPECT_TRUE(has(says, "no command was sent")) << says;

  e.tls.ca_file.clear();
  EXPECT_TRUE(has(refusal(e), "the system's store"));

  e.tls.verify = false;
  EXPECT_NE(connected(e), nullptr);
}

TEST_F(Tls, RefusesACertificateForAnotherName) {
  const Identity other(dir_.path() + "/other", {.name = "127.0.0.1", .san = "DNS:redis.example.org"}, &ca_);
  const TlsServer server(other);
  std::string says = refusal(endpoint(server.url()));
  EXPECT_TRUE(has(says, "IP address mismatch") && has(says, "does not name '127.0.0.1'")) << says;
  says = refusal(endpoint(server.url("localhost")));
  EXPECT_TRUE(has(says, "ostname mismatch") && has(says, "does not name 'localhost'")) << says;
}

TEST_F(Tls, RefusesAnExpiredCertificate) {
  const Identity old(dir_.path() + "/old", {.name = "old", .san = "IP:127.0.0.1", .valid_days = -1}, &ca_);
  const TlsServer server(old);
  EXPECT_TRUE(has(refusal(endpoint(server.url())), "certificate has expired"));
}

TEST_F(Tls, ShowsAClientCertificateWhereOneIsRequired) {
  const Identity client(dir_.path() + "/client", {.name = "client", .san = ""}, &ca_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsServer server(good_, {.version = version, .client_ca = ca_.cert_file});
    Endpoint e = endpoint(server.url());
    e.tls.cert_file = client.cert_file;
    e.tls.key_file = client.key_file;
    const auto transport = connected(e);
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(echoed(*transport, "PING"), "PING");
  }
}

TEST_F(Tls, TellsThatAClientCertificateIsMissing) {
  const TlsServer old(good_, {.version = TLS1_2_VERSION, .client_ca = ca_.cert_file});
  const std::string says = refusal(endpoint(old.url()));
  EXPECT_TRUE(has(says, "handshake failed") && has(says, "alert")) << says;

  // With TLS 1.3 our side of the handshake is over before the server has looked.
  const TlsServer server(good_, {.version = TLS1_3_VERSION, .client_ca = ca_.cert_file});
  const auto transport = connected(endpoint(server.url()));
  ASSERT_NE(transport, nullptr);
  char byte[1];
  const Io io = transport->read(byte, within(10s));
  EXPECT_EQ(io.status, IoStatus::failed);
  EXPECT_TRUE(has(io.error.message(), "certificate required")) << text(io);
  EXPECT_EQ(::ERR_peek_error(), 0UL);
}

TEST_F(Tls, NamesTheFileThatItCannotUse) {
  const TlsServer server(good_);
  const std::string none = dir_.path() + "/none.pem";
  Endpoint e = endpoint(server.url());
  e.tls.ca_file = none;
  std::string says = refusal(e);
  EXPECT_TRUE(has(says, "the CA file '" + none + "'") && has(says, "No such file")) << says;

  e = endpoint(server.url());
  e.tls.cert_file = none;
  e.tls.key_file = good_.key_file;
  says = refusal(e);
  EXPECT_TRUE(has(says, "the certificate file '" + none + "'") && has(says, "No such file")) << says;

  e.tls.cert_file = good_.cert_file;
  e.tls.key_file = ca_.key_file;
  says = refusal(e);
  EXPECT_TRUE(has(says, "'" + ca_.key_file + "'") && has(says, "mismatch")) << says;

  e.tls.key_file = dir_.path() + "/locked.key";
  good_.save_key_encrypted(e.tls.key_file, "secret");
  says = refusal(e);  // and asks no terminal for the password
  EXPECT_TRUE(has(says, "'" + e.tls.key_file + "'") && has(says, "unencrypted")) << says;
}

TEST_F(Tls, TellsAServerThatSpeaksNoTls) {
  const Listener listener;
  const std::string url = "rediss://127.0.0.1:" + std::to_string(listener.port());
  for (const std::string_view answer : {"-ERR unknown command\r\n", ""}) {
    std::jthread plain([&] {
      const OwnedFd peer = listener.accept();
      char bytes[4096];
      (void)::recv(peer.get(), bytes, sizeof bytes, 0);
      (void)::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
    // One that merely closes may be restarting, so that a wait goes on; one that answers otherwise is no TLS server.
    const std::string says = refusal(endpoint(url), answer.empty() ? Errc::connection_closed : Errc::tls_failed);
    EXPECT_TRUE(has(says, "does not seem to speak TLS on this port") || has(says, "and does not seem to")) << says;
  }
}

TEST_F(Tls, AHandshakeThatNobodyAnswersEndsAtTheDeadlineOrAtAStop) {
  const Listener listener;
  const Endpoint silent = endpoint("rediss://127.0.0.1:" + std::to_string(listener.port()));
  expect_takes(100ms, 150ms, [&] {
    EXPECT_TRUE(has(refusal(silent, Errc::timed_out, 100ms), "Does the server speak TLS on this port?"));
  });
  std::stop_source source;
  Result<std::unique_ptr<Transport>> result = Error{};
  std::jthread waiting([&] { result = connect(silent, within(30s, source.get_token())); });
  const OwnedFd peer = listener.accept();
  source.request_stop();
  waiting.join();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Errc::cancelled);
}

TEST_F(Tls, IsQuietThroughSessionTicketsAndKeyUpdates) {
  const TlsServer server(good_, {.version = TLS1_3_VERSION, .client_ca = ""});
  const auto transport = connected(endpoint(server.url()));
  ASSERT_NE(transport, nullptr);
  ASSERT_TRUE(eventually([&] { return server.handshakes() == 1; })) << "the tickets have left then";
  EXPECT_TRUE(transport->quiet());
  EXPECT_EQ(echoed(*transport, "PING"), "PING");
  ASSERT_EQ(transport->write("UPDATE", within(10s)).status, IoStatus::ok);
  ASSERT_TRUE(eventually([&] { return server.updates() == 1; }));
  EXPECT_TRUE(transport->quiet());
  EXPECT_EQ(echoed(*transport, "PING"), "PING");
  EXPECT_TRUE(transport->quiet());
}

TEST_F(Tls, IsNotQuietAfterDataOrAClose) {
  const TlsServer server(good_);
  const auto transport = connected(endpoint(server.url()));
  ASSERT_NE(transport, nullptr);
  ASSERT_EQ(transport->write("hello", within(10s)).status, IoStatus::ok);
  EXPECT_TRUE(eventually([&] { return !transport->quiet(); }));
  char bytes[8];
  EXPECT_EQ(transport->read(bytes, within(10s)).bytes, 5U) << "looking must not take it";
  EXPECT_TRUE(transport->quiet());
  ASSERT_EQ(transport->write("BYE", within(10s)).status, IoStatus::ok);
  EXPECT_TRUE(eventually([&] { return !transport->quiet(); }));
  EXPECT_EQ(transport->read(bytes, within(10s)).status, IoStatus::closed);
}

TEST_F(Tls, FailsButDoesNotCrashInAStaticThatOutlivesOpenSsl) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use_it_too_late = [this] {
    auto server = std::make_unique<TlsServer>(good_);
    const Endpoint e = endpoint(server->url());
    auto transport = connected(e);
    server.reset();  // its thread must not outlive OpenSSL either
    const Listener silent;
    ::OPENSSL_cleanup();  // as its exit handler does
    char byte[1];
    const Io io = transport->write("x", within(10s));
    const bool well = io.bytes == 0 && io.status == IoStatus::failed && has(text(io), "exiting") &&
                      has(text(transport->read(byte, within(10s))), "exiting") && !transport->quiet() &&
                      !connect_tls(dial(silent.address(), within(10s)).fd, e, within(10s)).has_value();
    transport.reset();
    ::_exit(well ? 0 : 1);
  };
  EXPECT_EXIT(use_it_too_late(), testing::ExitedWithCode(0), "");
}

TEST_F(Tls, WriteCountsWholeRecordsOnlyAndNothingAfterAStop) {
  const TlsServer server(good_);
  const auto transport = connected(endpoint(server.url()));
  ASSERT_NE(transport, nullptr);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(transport->write("x", within(10s, source.get_token())).bytes, 0U);
  EXPECT_EQ(transport->write("x", within(0ms)).status, IoStatus::timed_out);
  EXPECT_EQ(echoed(*transport, "PING"), "PING") << "what was not written must not have been encrypted";

  // The server echoes until our unread replies fill both directions.
  const std::string much(64'000'000, 'x');
  const Io io = transport->write(much, within(500ms));
  EXPECT_EQ(io.status, IoStatus::timed_out) << text(io);
  EXPECT_LT(io.bytes, much.size());
  EXPECT_EQ(io.bytes % 16'384, 0U);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
