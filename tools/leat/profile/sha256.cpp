#include "tools/leat/profile/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdio>

namespace leat::tools {

Result<std::string> sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return Error{"libcrypto offers no SHA-256 here; see its configuration, openssl.cnf"};
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", digest[i]);
    out += text;
  }
  return out;
}

}  // namespace leat::tools
