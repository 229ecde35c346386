// leat gateway: HTTP in front of a leatd, and what belongs to several of them.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "tools/base/cli/json_output.h"
#include "tools/leat/commands.h"
#include "tools/leat/gateway/fleet/fleet_commands.h"
#include "tools/leat/gateway/gateway.h"

namespace leat::tools {
namespace {

int run(const cli::Arguments& args) {
  const std::string_view name = gateway::kGatewayCommand.name;
  if (args.given("haproxy")) return gateway::print_haproxy(args);
  if (args.given("ledger")) return gateway::check_ledger(args);
  auto options = gateway::options_of(args);
  if (!options.ok()) return cli::fail(name, options.error());
  const int ready_fd = options->ready_fd;
  (void)::signal(SIGPIPE, SIG_IGN);
  gateway::Gateway serving(std::move(*options));
  if (auto status = serving.listen(); !status) return cli::fail(name, status.error());
  if (ready_fd >= 0) {
    std::string line = "ready " + std::to_string(serving.port());
    if (serving.grpc() != nullptr) line += " " + std::to_string(serving.grpc()->port());
    line += '\n';
    (void)!::write(ready_fd, line.data(), line.size());
    (void)::close(ready_fd);
  }
  return serving.run();
}

}  // namespace

extern const cli::Subcommand kLeatGateway;
const cli::Subcommand kLeatGateway = {.command = &gateway::kGatewayCommand, .run = run};

}  // namespace leat::tools
