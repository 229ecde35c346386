#include "tools/leat/gateway/fleet/fleet_commands.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/base/cli/json_output.h"
#include "tools/leat/gateway/fleet/haproxy.h"
#include "tools/leat/gateway/fleet/ledger.h"
#include "tools/leat/gateway/options.h"

namespace leat::gateway {
namespace {

using namespace std::chrono_literals;
constexpr auto kLimit = 2s;
constexpr std::uint64_t kHeadBytes = 16 * 1024;
constexpr std::uint64_t kUnknownBody = 1U << 20;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);)
    if (!part.empty()) out.push_back(part);
  return out;
}

// "[NAME=]ADDRESS:PORT[/AGENTPORT]"
Result<FleetHost> host_of(const std::string& text, std::size_t index) {
  FleetHost out{.name = "node" + std::to_string(index + 1), .address = text, .agent = {}};
  if (const std::size_t equals = out.address.find('='); equals != std::string::npos) {
    out.name = out.address.substr(0, equals);
    out.address = out.address.substr(equals + 1);
  }
  std::string port;
  if (const std::size_t slash = out.address.find('/'); slash != std::string::npos) {
    port = out.address.substr(slash + 1);
    out.address = out.address.substr(0, slash);
  }
  if (const auto address = address_of(out.address); !address.ok()) return Error{address.error()};
  const bool plain = !out.name.empty() && std::all_of(out.name.begin(), out.name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!plain) return Error{"'" + out.name + "' is no name of a node; use letters, digits, '-', '_' and '.'"};
  if (!port.empty()) {
    out.agent = out.address.substr(0, out.address.rfind(':') + 1) + port;
    if (const auto agent = address_of(out.agent); !agent.ok()) return Error{agent.error()};
  }
  return out;
}

// What the node says of itself; unknown where it does not answer.
struct Facts {
  double rate = 0;
  std::uint64_t body_bytes = 0;
  std::string why_not;
};
Facts facts_of(const Address& address, const std::string& token) {
  Facts out;
  if (const auto text = get(address, "/metrics", token, kLimit); text.ok()) {
    const Samples samples = samples_of(*text);
    out.rate = sum_of(samples, "leat_sustainable_rate");
    out.body_bytes = static_cast<std::uint64_t>(sum_of(samples, "leat_gateway_largest_body_bytes"));
  } else {
    out.why_not = " (" + text.error() + ")";
  }
  return out;
}

// The one that all nodes take; empty: they want none.
Result<std::string> token_of(const cli::Arguments& args) {
  if (!args.given("token-file")) return std::string();
  auto tokens = tokens_in(args.text("token-file"));
  if (!tokens.ok()) return Error{tokens.error()};
  return std::move(tokens->front());
}

}  // namespace

int print_haproxy(const cli::Arguments& args) {
  std::vector<FleetHost> hosts;
  HaproxyOptions options{.bind = args.text("bind")};
  const auto token = token_of(args);
  if (!token.ok()) return cli::fail(kGatewayCommand.name, token.error());
  for (const std::string& text : split(args.text("haproxy"), ',')) {
    auto host = host_of(text, hosts.size());
    if (!host.ok()) return cli::fail(kGatewayCommand.name, host.error());
    const Facts facts = facts_of(*address_of(host->address), *token);
    if (facts.rate <= 0)
      std::fprintf(stderr, "leat gateway: %s does not say how fast it is%s; its weight is 100\n", host->address.c_str(),
                   facts.why_not.c_str());
    host->items_per_second = facts.rate;
    options.body_bytes = std::max(options.body_bytes, facts.body_bytes + kHeadBytes);
    hosts.push_back(std::move(*host));
  }
  // Pictures have any size; what is not sent whole cannot be sent again.
  if (options.body_bytes <= kHeadBytes || args.given("body-mib"))
    options.body_bytes = args.given("body-mib") ? std::uint64_t(args.integer("body-mib")) << 20 : kUnknownBody;
  if (hosts.empty()) return cli::fail(kGatewayCommand.name, "--haproxy names no host; write ADDRESS:PORT,...");
  std::fputs(haproxy_config(hosts, options).c_str(), stdout);
  return 0;
}

int check_ledger(const cli::Arguments& args) {
  const cli::JsonOutput json(args);
  FleetLedger ledger;
  bool all = true;
  const auto token = token_of(args);
  if (!token.ok()) return cli::fail(kGatewayCommand.name, token.error());
  for (const std::string& host : split(args.text("ledger"), ',')) {
    const auto address = address_of(host);
    if (!address.ok()) return cli::fail(kGatewayCommand.name, address.error());
    const auto text = get(*address, "/metrics", *token, kLimit);
    all = all && text.ok();
    ledger.nodes.push_back(text.ok() ? node_ledger(host, samples_of(*text))
                                     : NodeLedger{.host = host, .unreachable = text.error()});
  }
  if (const std::string path = args.text("haproxy-stats"); !path.empty()) {
    struct stat found {};
    std::string csv;
    if (::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
      auto said = ask_socket(path, "show stat", kLimit);
      if (!said.ok()) return cli::fail(kGatewayCommand.name, said.error());
      csv = std::move(*said);
    } else {
      std::ifstream file(path);
      csv.assign(std::istreambuf_iterator<char>(file), {});
    }
    ledger.balancer = balancer_ledger(csv);
    if (!ledger.balancer) return cli::fail(kGatewayCommand.name, path + " holds no statistics of HAProxy's");
    auto& b = *ledger.balancer;
    double came = 0;
    for (const NodeLedger& n : ledger.nodes) came += n.requests;
    if (b.answers > b.requests) b.wrong.push_back("more answers than requests");
    if (all && came > b.sent + b.retried) b.wrong.push_back("nodes count more requests than it sent");
  }
  if (!json.alone()) std::fputs(text_of(ledger).c_str(), stdout);
  const int written = json.write(json_of(ledger).dump(2));
  return written != 0 ? written : ledger.exact() && all ? 0 : 1;
}

}  // namespace leat::gateway
