#include "engine/exec/model_files/sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace leat::exec {
namespace {

class Digest {
 public:
  Digest() : sound_(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) {}
  void add(const void* bytes, std::size_t count) {
    sound_ = sound_ && EVP_DigestUpdate(context_.get(), bytes, count) == 1;
  }
  Result<std::string> hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (!sound_ || EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1)
      return Error{"libcrypto offers no SHA-256 here; see its configuration, openssl.cnf"};
    std::string out;
    for (unsigned int i = 0; i < size; ++i) {
      char text[3];
      std::snprintf(text, sizeof text, "%02x", digest[i]);
      out += text;
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
  bool sound_;
};

}  // namespace

Result<std::string> sha256_hex(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

Result<std::string> sha256_of_file(int fd) {
  constexpr std::size_t kPiece = 1 << 20;
  Digest digest;
  std::vector<char> piece(kPiece);
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, piece.data(), piece.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{std::string("cannot be read: ") + std::strerror(errno)};
    if (got == 0) return digest.hex();
    digest.add(piece.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

}  // namespace leat::exec
