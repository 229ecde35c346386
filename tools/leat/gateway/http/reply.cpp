#include "tools/leat/gateway/http/reply.h"

#include "tools/base/json/json.h"

namespace leat::gateway {
namespace {

const char* words_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::size_t Reply::body_bytes() const noexcept {
  std::size_t bytes = body.size();
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

std::string head_of(const Reply& reply, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " " + words_of(reply.status) + "\r\n";
  if (!reply.type.empty()) out += "Content-Type: " + reply.type + "\r\n";
  out += "Content-Length: " + std::to_string(reply.body_bytes()) + "\r\n";
  if (!keep_alive) out += "Connection: close\r\n";
  for (const auto& [name, value] : reply.fields) {
    out += name + ": ";
    for (const char c : value) out += c == '\r' || c == '\n' ? ' ' : c;
    out += "\r\n";
  }
  return out + "\r\n";
}

Reply error_reply(int status, std::string_view why) {
  Reply out;
  out.status = status;
  out.body = Json{{"error", why}}.dump();
  return out;
}

}  // namespace leat::gateway
