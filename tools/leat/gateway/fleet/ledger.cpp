#include "tools/leat/gateway/fleet/ledger.h"

#include <algorithm>
#include <map>

#include "tools/base/text/formatted.h"

namespace leat::gateway {
namespace {

void hold(std::vector<std::string>& wrong, double left, double right, const char* what) {
  if (left != right) wrong.push_back(formatted("%s: %.0f, not %.0f", what, left, right));
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t comma = line.find(',');
    out.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

NodeLedger node_ledger(const std::string& host, const Samples& samples) {
  NodeLedger out{.host = host};
  const auto gateway = [&](const char* name) { return sum_of(samples, std::string("leat_gateway_") + name); };
  const auto total = [&](const char* name) { return sum_of(samples, std::string("leat_total_") + name); };
  out.requests = gateway("requests_total");
  out.answers = gateway("answers_total");
  out.in_flight = gateway("in_flight");
  out.submitted = gateway("submitted_total");
  out.framed = gateway("frames_total");
  out.lost = gateway("lost_total");
  out.taken = total("submitted_total");
  for (const char* outcome : {"completed_total", "late_total", "dropped_total", "failed_total", "rejected_total"})
    out.ended += total(outcome);
  out.in_leatd = total("in_flight");
  hold(out.wrong, out.answers + out.in_flight, out.requests, "requests answered or in flight");
  // A client that left does not wait for its frame: those are still leatd's.
  if (out.framed + out.lost > out.submitted)
    out.wrong.push_back(formatted("frames answered: %.0f of %.0f", out.framed + out.lost, out.submitted));
  hold(out.wrong, out.ended + out.in_leatd, out.taken, "leatd's frames ended or in flight");
  return out;
}

std::optional<BalancerLedger> balancer_ledger(std::string_view csv) {
  std::map<std::string, std::size_t, std::less<>> column;
  BalancerLedger out;
  while (!csv.empty()) {
    const std::size_t end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv = end == std::string_view::npos ? std::string_view() : csv.substr(end + 1);
    if (line.starts_with("# ")) {
      const auto names = fields_of(line.substr(2));
      for (std::size_t i = 0; i < names.size(); ++i) column[std::string(names[i])] = i;
      continue;
    }
    const auto fields = fields_of(line);
    const auto text = [&](const char* name) {
      const auto at = column.find(name);
      return at == column.end() || at->second >= fields.size() ? std::string_view() : fields[at->second];
    };
    const auto number = [&](const char* name) { return std::strtod(std::string(text(name)).c_str(), nullptr); };
    if (column.empty() || text("pxname") == "") continue;
    if (text("svname") == "FRONTEND") {
      out.requests += number("req_tot");
      for (const char* c : {"hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other"})
        out.answers += number(c);
      out.own_errors += number("ereq");
    } else if (text("svname") != "BACKEND") {
      out.sent += number("stot");
      out.retried += number("wretr");
      out.redispatched += number("wredis");
      out.nodes.push_back({.name = std::string(text("svname")),
                           .weight = number("weight"),
                           .sent = number("stot"),
                           .refused = number("wretr") + number("hrsp_5xx")});
    }
  }
  if (column.empty()) return std::nullopt;
  return out;
}

std::vector<std::string> suspects(const std::vector<BalancedNode>& nodes) {
  constexpr double kFew = 100;        // requests that say nothing yet
  constexpr double kMuch = 0.3;       // of what it was sent
  constexpr double kMoreThanAll = 2;  // times the share of all others
  std::vector<std::string> out;
  for (const BalancedNode& n : nodes) {
    double sent = 0, refused = 0;
    for (const BalancedNode& other : nodes) {
      if (&other == &n) continue;
      sent += other.sent;
      refused += other.refused;
    }
    if (n.sent < kFew || n.refused < kMuch * n.sent) continue;
    const double others = sent > 0 ? refused / sent : 0;
    if (n.refused < kMoreThanAll * others * n.sent) continue;
    out.push_back(
        formatted("%s refused %.0f of %.0f that it was sent, others %.0f %%; its weight says %.0f: more than it can do",
                  n.name.c_str(), n.refused, n.sent, 100 * others, n.weight));
  }
  return out;
}

bool FleetLedger::exact() const noexcept {
  return std::all_of(nodes.begin(), nodes.end(), [](const NodeLedger& n) { return n.wrong.empty(); }) &&
         (!balancer || balancer->wrong.empty());
}

std::string text_of(const FleetLedger& ledger) {
  std::string out = formatted("%-24s %10s %10s %9s %10s %10s %6s %10s %10s\n", "node", "requests", "answers",
                              "in flight", "submitted", "framed", "lost", "leatd took", "ended");
  for (const NodeLedger& n : ledger.nodes) {
    if (!n.unreachable.empty()) {
      out += formatted("%-24s %s\n", n.host.c_str(), n.unreachable.c_str());
      continue;
    }
    out += formatted("%-24s %10.0f %10.0f %9.0f %10.0f %10.0f %6.0f %10.0f %10.0f\n", n.host.c_str(), n.requests,
                     n.answers, n.in_flight, n.submitted, n.framed, n.lost, n.taken, n.ended);
    for (const std::string& wrong : n.wrong) out += "  wrong: " + wrong + "\n";
  }
  if (const auto& b = ledger.balancer) {
    out += formatted("balancer: %.0f requests, %.0f answers, %.0f sent to nodes, %.0f of them again, %.0f elsewhere\n",
                     b->requests, b->answers, b->sent, b->retried, b->redispatched);
    for (const std::string& wrong : b->wrong) out += "  wrong: " + wrong + "\n";
    for (const std::string& line : suspects(b->nodes)) out += "  look at " + line + "\n";
  }
  const bool all = std::all_of(ledger.nodes.begin(), ledger.nodes.end(), [](auto& n) { return n.unreachable.empty(); });
  return out + (ledger.exact() ? "exact" : "NOT exact") + (all ? "\n" : ", but not all nodes were asked\n");
}

Json json_of(const FleetLedger& ledger) {
  Json nodes = Json::array();
  for (const NodeLedger& n : ledger.nodes)
    nodes.push_back({{"host", n.host},
                     {"unreachable", n.unreachable},
                     {"requests", n.requests},
                     {"answers", n.answers},
                     {"in_flight", n.in_flight},
                     {"submitted", n.submitted},
                     {"framed", n.framed},
                     {"lost", n.lost},
                     {"leatd_submitted", n.taken},
                     {"leatd_ended", n.ended},
                     {"leatd_in_flight", n.in_leatd},
                     {"wrong", n.wrong}});
  Json out = {{"exact", ledger.exact()}, {"nodes", nodes}};
  if (const auto& b = ledger.balancer)
    out["balancer"] = {{"requests", b->requests}, {"answers", b->answers},           {"sent", b->sent},
                       {"retried", b->retried},   {"redispatched", b->redispatched}, {"suspects", suspects(b->nodes)},
                       {"wrong", b->wrong}};
  return out;
}

}  // namespace leat::gateway
