#pragma once
// Certificates made on the spot, as PEM files.
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace redlease {
inline namespace v0 {

class Identity {
 public:
  struct Wanted {
    std::string name;  // the subject
    std::string san;   // "DNS:localhost", "IP:127.0.0.1"; empty: none
    long valid_days{1};
    bool authority{false};
  };

  // Signed by `issuer`; by itself if there is none.
  Identity(const std::string& stem, const Wanted& wanted, const Identity* issuer = nullptr)
      : cert_file(stem + ".crt"), key_file(stem + ".key"), key_(make_key()), cert_(::X509_new(), ::X509_free) {
    X509* cert = cert_.get();
    check(::X509_set_version(cert, 2));
    static long serial = 0;
    check(::ASN1_INTEGER_set(::X509_get_serialNumber(cert), ++serial));
    constexpr long day = 24L * 60 * 60;
    ::X509_gmtime_adj(::X509_getm_notBefore(cert), -2 * day);
    ::X509_gmtime_adj(::X509_getm_notAfter(cert), wanted.valid_days * day);
    check(::X509_set_pubkey(cert, key_.get()));
    const auto* common_name = reinterpret_cast<const unsigned char*>(wanted.name.c_str());
    check(::X509_NAME_add_entry_by_txt(::X509_get_subject_name(cert), "CN", MBSTRING_UTF8, common_name, -1, -1, 0));
    const Identity& by = issuer != nullptr ? *issuer : *this;
    check(::X509_set_issuer_name(cert, ::X509_get_subject_name(by.cert_.get())));
    if (wanted.authority) add(by, NID_basic_constraints, "critical,CA:TRUE");
    if (!wanted.san.empty()) add(by, NID_subject_alt_name, wanted.san);
    check(::X509_sign(cert, by.key_.get(), ::EVP_sha256()));
    save(cert_file, [&](std::FILE* f) { return ::PEM_write_X509(f, cert); });
    save(key_file,
         [&](std::FILE* f) { return ::PEM_write_PrivateKey(f, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

  void save_key_encrypted(const std::string& file, std::string password) const {
    save(file, [&](std::FILE* f) {
      return ::PEM_write_PKCS8PrivateKey(f, key_.get(), ::EVP_aes_128_cbc(), password.data(),
                                         static_cast<int>(password.size()), nullptr, nullptr);
    });
  }

  const std::string cert_file;
  const std::string key_file;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;

  static void check(int result) {
    if (result <= 0) throw std::runtime_error("OpenSSL made no certificate");
  }

  static Key make_key() {
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&::EVP_PKEY_CTX_free)> context(
        ::EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr), ::EVP_PKEY_CTX_free);
    EVP_PKEY* key = nullptr;
    check(::EVP_PKEY_keygen_init(context.get()));
    check(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1));
    check(::EVP_PKEY_keygen(context.get(), &key));
    return {key, ::EVP_PKEY_free};
  }

  void add(const Identity& issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    ::X509V3_set_ctx(&context, issuer.cert_.get(), cert_.get(), nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, decltype(&::X509_EXTENSION_free)> extension(
        ::X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), ::X509_EXTENSION_free);
    if (extension == nullptr) throw std::runtime_error("OpenSSL made no extension of " + value);
    check(::X509_add_ext(cert_.get(), extension.get(), -1));
  }

  template <class Write>
  static void save(const std::string& file, Write write) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "w"), std::fclose);
    if (out == nullptr) throw std::runtime_error("cannot write " + file);
    check(write(out.get()));
  }

  Key key_;
  std::unique_ptr<X509, decltype(&::X509_free)> cert_;
};

}  // namespace v0
}  // namespace redlease
