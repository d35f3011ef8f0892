#include "tests/support/certificates.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>

namespace sluice::net::testing {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

Key make_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void set_name(X509_NAME* name, const std::string& text) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EXPECT_EQ(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, bytes,
                                         static_cast<int>(text.size()), -1, 0),
              1);
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    ASSERT_NE(extension, nullptr) << value;
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

Certificate begin(EVP_PKEY* key, const std::string& name, long serial, long valid_seconds) {
    Certificate certificate(X509_new(), X509_free);
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7 * 24 * 3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_seconds);
    X509_set_pubkey(certificate.get(), key);
    set_name(X509_get_subject_name(certificate.get()), name);
    return certificate;
}

void write(const std::string& path, EVP_PKEY* key, X509* certificate) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr) << path;
    if (key != nullptr) PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    if (certificate != nullptr) PEM_write_X509(file, certificate);
    std::fclose(file);
}

}  // namespace

Certificates::Certificates()
    : folder_(::testing::TempDir() + "sluice-tls-XXXXXX"), authority_key_(make_key()) {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    authority_ = begin(authority_key_.get(), "test authority", serial_++, 24L * 3600);
    X509_set_issuer_name(authority_.get(), X509_get_subject_name(authority_.get()));
    extend(authority_.get(), authority_.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(authority_.get(), authority_.get(), NID_subject_key_identifier, "hash");
    X509_sign(authority_.get(), authority_key_.get(), EVP_sha256());
    write(ca_file(), nullptr, authority_.get());
}

Certificates::~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

void Certificates::make(const std::string& name, const Server& server) {
    const Key key = make_key();
    const Certificate made =
        begin(key.get(), server.common_name, serial_++, server.valid_for.count());
    X509_set_issuer_name(made.get(), X509_get_subject_name(authority_.get()));
    extend(made.get(), authority_.get(), NID_subject_alt_name, server.names);
    extend(made.get(), authority_.get(), NID_authority_key_identifier, "keyid");
    X509_sign(made.get(), authority_key_.get(), EVP_sha256());
    write(certificate(name), nullptr, made.get());
    write(this->key(name), key.get(), nullptr);
}

}  // namespace sluice::net::testing
