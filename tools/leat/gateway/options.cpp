#include "tools/leat/gateway/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "tools/base/cli/json_output.h"
#include "tools/leat/commands.h"

namespace leat::gateway {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "listen",
     .letter = 'l',
     .type = Type::text,
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8000",
     .repeat = true,
     .help = "where to serve: 127.0.0.1:8000, [::1]:8000, unix:/run/leat/gateway.sock; port 0: any"},
    {.name = "grpc",
     .type = Type::text,
     .value = "ADDRESS",
     .help = "serve KServe v2 over gRPC there too, as Triton's clients speak it: 127.0.0.1:8001 (starts leat-grpc)"},
    {.name = "token-file",
     .type = Type::path,
     .value = "FILE",
     .help = "tokens, one a line, of which TCP clients must bear one (Authorization: Bearer); needed beyond loopback; "
             "with --haproxy and --ledger the first of them is borne"},
    {.name = "node",
     .type = Type::text,
     .value = "NAME",
     .help = "what answers call this node (default: the host's name)"},
    cli::integer_option("streams", "8", 1, 256,
                        "streams at leatd, each a connection to it; the longest unused gives way"),
    cli::integer_option("depth", "8", 1, 60, "requests of one stream that wait or run at once"),
    cli::integer_option("in-flight", "256", 1, 65536, "requests in flight; one more is answered with 503"),
    cli::integer_option("client-in-flight", "256", 1, 65536,
                        "of one client (address or user); one more is answered with 429"),
    cli::integer_option("connections", "1024", 1, 65536,
                        "connections; of those whose client is waited for one gives way to a newcomer"),
    cli::integer_option("body-mib", "64", 1, 1024, "longest body", "MIB"),
    cli::integer_option("held-mib", "256", 1, 65536, "memory for bodies and answers that move slowly, all together",
                        "MIB"),
    {.name = "shared-memory",
     .help = "let clients of this host name their own shared memory (KServe's system_shared_memory)"},
    {.name = "pictures",
     .type = Type::text,
     .value = "APPLICATION",
     .help = "what /v1/vision/detection asks (default: the only application that takes pictures)"},
    {.name = "agent",
     .type = Type::text,
     .value = "ADDRESS",
     .help = "tell HAProxy's agent checks there how much of this node is free: 127.0.0.1:9000"},
    cli::real_option("reference-rate", "0", 0, 1e9,
                     "items a second of the fastest node there is, which the agent's share is of; 0: this node's", "R"),
    cli::integer_option("way-ms", "5", 0, 1000,
                        "of each budget kept for the way of request and answer, a tenth of it at most", "MS"),
    cli::integer_option("drain-ms", "5000", 0, 3'600'000,
                        "after SIGTERM: not ready at once, and the end when nothing is in flight, or after that", "MS"),
    {.name = "haproxy",
     .type = Type::text,
     .value = "HOSTS",
     .help = "print the configuration of an HAProxy for HOSTS, [NAME=]ADDRESS:PORT[/AGENTPORT],..., and leave"},
    {.name = "bind",
     .type = Type::text,
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8080",
     .help = "with --haproxy: where it listens"},
    {.name = "ledger",
     .type = Type::text,
     .value = "HOSTS",
     .help = "check over HOSTS, ADDRESS:PORT,..., that every request was answered once, and leave"},
    {.name = "haproxy-stats",
     .type = Type::path,
     .value = "PATH",
     .help = "with --ledger: HAProxy's stats socket, or a file of its `show stat`"},
    cli::json_option("with --ledger: print the figures as JSON in place of text"),
    cli::integer_option("ready-fd", "-1", -1, 1023, "write a line with the port there when it listens", "FD"),
    tools::kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat gateway", .text = "KServe's clients find the models of this host's leatd at 127.0.0.1:8000"},
    {.line = "curl -s 127.0.0.1:8000/v2/models/detect", .text = "its inputs and outputs"},
    {.line = "leat gateway --listen 0.0.0.0:8000 --token-file /etc/leat/tokens --agent 0.0.0.0:9000",
     .text = "a node behind a balancer"},
    {.line =
         "leat gateway --haproxy a=10.0.0.1:8000/9000,b=10.0.0.2:8000/9000 --token-file /etc/leat/tokens > haproxy.cfg",
     .text = "the balancer's configuration, with the nodes' measured speeds as weights"}};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "node";
}

}  // namespace

Result<std::vector<std::string>> tokens_in(const std::string& path) {
  struct stat found {};
  std::ifstream file(path);
  if (!file || ::stat(path.c_str(), &found) != 0) return Error{path + " cannot be read; name a file of tokens"};
  if ((found.st_mode & 0007) != 0) return Error{path + " is open to everybody; chmod o= it first"};
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    if (line.size() < 16) return Error{path + ": a token has at least 16 bytes"};
    out.push_back(line);
  }
  if (out.empty()) return Error{path + " holds no token"};
  return out;
}

const cli::Command kGatewayCommand = {
    .name = "leat gateway",
    .summary = "serves a daemon's models over HTTP: KServe v2, pictures, metrics",
    .description =
        "A client of leatd like any other, with its user's limits. Tensors go from the connection into the frame "
        "slots, "
        "and from the results to the connection. Budgets and classes come from the request's parameters (timeout, "
        "priority) or headers (X-Leat-Budget-Us, X-Leat-Class, X-Leat-Stream); what cannot be done in time is refused "
        "at once: 503, another node may; 429, the client's own limit; 504, late. docs/guide/gateway.md says the rest.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-status(1), leat-metrics(1), leatd(8)",
};

Result<GatewayOptions> options_of(const cli::Arguments& args) {
  GatewayOptions out;
  out.socket = args.text("socket");
  out.node = args.given("node") ? args.text("node") : host_name();
  if (args.given("token-file")) {
    auto tokens = tokens_in(args.text("token-file"));
    if (!tokens.ok()) return Error{tokens.error()};
    out.tokens = std::move(*tokens);
  }
  std::vector<std::string> listen = args.texts("listen");
  if (listen.empty()) listen.push_back(args.text("listen"));
  for (const std::string& text : listen) {
    auto address = address_of(text);
    if (!address.ok()) return Error{address.error()};
    if (!address->local && out.tokens.empty())
      return Error{text + " is reached from other hosts; give --token-file, or listen at 127.0.0.1"};
    out.listen.push_back(std::move(*address));
  }
  if (args.given("agent")) {
    auto address = address_of(args.text("agent"));
    if (!address.ok()) return Error{address.error()};
    out.agent = std::move(*address);
  }
  if (args.given("grpc")) {
    const std::string text = args.text("grpc");
    auto address = address_of(text);
    if (!address.ok()) return Error{address.error()};
    if (!address->local && out.tokens.empty())
      return Error{text + " is reached from other hosts; give --token-file, or take 127.0.0.1"};
    const auto tcp = [](const Address& a) { return a.path.empty(); };
    if (std::none_of(out.listen.begin(), out.listen.end(), tcp))
      return Error{"--grpc passes calls on by TCP; let the gateway listen at 127.0.0.1 too"};
    out.grpc = GrpcOptions{.listen = text.find(':') == std::string::npos ? "127.0.0.1:" + text : text, .gateway = {}};
  }
  const auto count = [&](const char* name) { return static_cast<std::uint32_t>(args.integer(name)); };
  out.streams = count("streams");
  out.depth = count("depth");
  out.in_flight = count("in-flight");
  out.client_in_flight = count("client-in-flight");
  out.http.connections = count("connections");
  out.http.connections_each = std::max(1U, out.http.connections / 2);
  out.http.body_bytes = std::uint64_t{count("body-mib")} << 20;
  if (out.grpc) out.grpc->body_bytes = out.http.body_bytes;
  out.held_bytes = std::uint64_t{count("held-mib")} << 20;
  out.shared_memory = args.flag("shared-memory");
  out.reference_rate = args.real("reference-rate");
  out.way_ns = args.integer("way-ms") * 1'000'000;
  out.drain_ns = args.integer("drain-ms") * 1'000'000;
  out.ready_fd = static_cast<int>(args.integer("ready-fd"));
  out.pictures = args.text("pictures");
  return out;
}

}  // namespace leat::gateway
