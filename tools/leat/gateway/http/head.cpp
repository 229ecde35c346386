#include "tools/leat/gateway/http/head.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

namespace leat::gateway {
namespace {

namespace http = boost::beast::http;
constexpr std::string_view kEnd = "\r\n\r\n";

HeadRead refused(int status, std::string why) {
  HeadRead out;
  out.status = status;
  out.why = std::move(why);
  return out;
}

template <class Text>
std::string_view view(const Text& text) {
  return {text.data(), text.size()};
}

// Line feeds alone, bytes that are none of text, and a continued line are read differently by different servers.
bool plain(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto c = static_cast<unsigned char>(head[i]);
    if (c == '\r') {
      if (i + 1 == head.size() || head[i + 1] != '\n') return false;
      if (++i + 1 < head.size() && (head[i + 1] == ' ' || head[i + 1] == '\t')) return false;
      continue;
    }
    if ((c < ' ' && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

std::string_view Head::field(std::string_view name) const noexcept {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return {};
}

bool Head::plain_body() const {
  return std::all_of(fields.begin(), fields.end(), [](const auto& field) {
    return field.first != "content-encoding" || field.second.empty() || lower_case(field.second) == "identity";
  });
}

namespace {

// Of a target in the absolute form, which clients of a proxy send and every server has to take (RFC 9112, 3.2.2), the
// part after the host; others as they are.
std::string_view path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower_case(target.substr(0, scheme.size())) != scheme) continue;
    const std::size_t host = scheme.size(), path = target.find_first_of("/?", host);
    if (path == host || target.size() == host) return {};  // it names no host
    if (path == std::string_view::npos) return "/";
    return target[path] == '/' ? target.substr(path) : std::string_view{};
  }
  return target;
}

}  // namespace

HeadRead read_head(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kMaxHeadBytes).find(kEnd);
  if (end == std::string_view::npos) {
    if (bytes.size() < kMaxHeadBytes) return {};
    return refused(431, "the request's head is longer than " + std::to_string(kMaxHeadBytes) + " bytes");
  }
  const std::string_view text = bytes.substr(0, end + kEnd.size());
  if (!plain(text)) return refused(400, "the request's head holds bytes that HTTP does not allow there");
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(kMaxHeadBytes));
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  boost::system::error_code error;
  parser.put(boost::asio::const_buffer(text.data(), text.size()), error);
  if (error || !parser.is_header_done()) return refused(400, "the request is no HTTP/1.1: " + error.message());
  const auto& message = parser.get();
  if (message.version() != 11 && message.version() != 10) return refused(505, "HTTP/1.1 is spoken here");
  HeadRead out;
  out.bytes = text.size();
  Head& head = out.head;
  head.method = view(message.method_string());
  const std::string_view target = path_of(view(message.target()));
  const std::size_t question = target.find('?');
  head.path = target.substr(0, question);
  if (question != std::string_view::npos) head.query = target.substr(question + 1);
  if (head.path.empty() || head.path.front() != '/') return refused(400, "the request's target is no path");
  std::uint32_t lengths = 0, hosts = 0;
  for (const auto& field : message) {
    std::string name = lower_case(view(field.name_string()));
    if (name == "transfer-encoding")
      return refused(411, "chunked bodies are not taken; send the body with its Content-Length");
    lengths += name == "content-length";
    hosts += name == "host";
    head.fields.emplace_back(std::move(name), view(field.value()));
  }
  if (lengths > 1 || hosts > 1) return refused(400, "the request says its length or its host twice");
  if (hosts == 0 && message.version() == 11) return refused(400, "the request names no host");
  const std::string_view length = head.field("content-length");
  if (lengths == 1) {
    if (length.empty() || length.size() > 15 ||
        !std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return refused(400, "Content-Length is no length");
    head.content_bytes = std::stoull(std::string(length));
  }
  head.keep_alive = message.keep_alive();
  const std::string_view expects = head.field("expect");
  if (!expects.empty() && lower_case(expects) != "100-continue")
    return refused(417, "only 100-continue can be expected");
  head.expects_continue = !expects.empty() && head.content_bytes > 0;
  return out;
}

}  // namespace leat::gateway
