// Targets and encodings of a request's head, as HTTP's documents say them.
#include "tools/leat/gateway/http/head.h"

#include <gtest/gtest.h>

namespace leat::gateway {
namespace {

Head head_of(const std::string& target, const std::string& fields = "") {
  const HeadRead read = read_head("POST " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
  EXPECT_EQ(read.status, 0) << target << ": " << read.why;
  return read.head;
}

TEST(Head, ATargetMayNameItsHost) {
  for (const char* target : {"/v2/models/m?a=b", "http://host/v2/models/m?a=b", "HTTP://10.0.0.1:8000/v2/models/m?a=b",
                             "https://[::1]:1/v2/models/m?a=b"}) {
    const Head head = head_of(target);
    EXPECT_EQ(head.path, "/v2/models/m") << target;
    EXPECT_EQ(head.query, "a=b") << target;
  }
  EXPECT_EQ(head_of("http://host").path, "/");
  EXPECT_EQ(head_of("/http://host/x").path, "/http://host/x");
  for (const char* target : {"http://", "http:///v2", "http://host?a", "ftp://host/v2", "host:80", "*"}) {
    const HeadRead read = read_head(std::string("GET ") + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(read.status, 400) << target;
  }
}

TEST(Head, IdentityIsNoEncoding) {
  EXPECT_TRUE(head_of("/").plain_body());
  EXPECT_TRUE(head_of("/", "Content-Encoding: identity\r\n").plain_body());
  EXPECT_TRUE(head_of("/", "content-encoding: Identity \r\n").plain_body());
  EXPECT_FALSE(head_of("/", "Content-Encoding: gzip\r\n").plain_body());
  EXPECT_FALSE(head_of("/", "Content-Encoding: identity\r\nContent-Encoding: br\r\n").plain_body());
  EXPECT_FALSE(head_of("/", "Content-Encoding: identity, gzip\r\n").plain_body());
}

}  // namespace
}  // namespace leat::gateway
