// leat-grpc: KServe v2 by gRPC in front of a gateway.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "tools/base/cli/command.h"
#include "tools/grpc/service.h"
#include "tools/grpc/upstream.h"

namespace {

using leat::cli::Type;

constexpr leat::cli::Option kOptions[] = {
    {.name = "listen",
     .letter = 'l',
     .type = Type::text,
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8001",
     .help = "where to serve: 127.0.0.1:8001, [::1]:8001, unix:/run/leat/grpc.sock; port 0: any"},
    {.name = "gateway",
     .type = Type::text,
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8000",
     .help = "where `leat gateway` listens"},
    leat::cli::integer_option("body-mib", "64", 1, 1024, "longest message, either way", "MIB"),
    leat::cli::integer_option("calls", "256", 1, 4096, "calls at once, a thread each; one more is RESOURCE_EXHAUSTED"),
    leat::cli::integer_option("memory-mib", "512", 16, 65536, "memory for messages, all together, about", "MIB"),
    leat::cli::integer_option("ready-fd", "-1", -1, 1023, "write a line with the port there when it listens", "FD"),
};
constexpr leat::cli::Example kExamples[] = {
    {"leat gateway --grpc 127.0.0.1:8001", "the usual way: the gateway starts it, and it ends with the gateway"},
    {"leat-grpc --gateway 127.0.0.1:8000", "beside a gateway that runs already"}};
constexpr leat::cli::Command kCommand = {
    .name = "leat-grpc",
    .summary = "serves a gateway's models over gRPC: KServe v2 as Triton's clients speak it",
    .description =
        "Each call is passed on to `leat gateway`, which keeps budgets, limits, tokens (metadata `authorization`) and "
        "figures. "
        "A call's deadline is its budget where the parameter `timeout` says no other; metadata x-leat-class and "
        "x-leat-stream mean what the headers of these names do. Which node answered, why not, and how long it took "
        "stand in the trailing metadata.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-gateway(1), leatd(8)",
    .section = 8};
constexpr auto kEnding = std::chrono::seconds(5);

int serve(const leat::cli::Arguments& args) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before there are threads
  (void)::signal(SIGPIPE, SIG_IGN);
  const int bytes = static_cast<int>(args.integer("body-mib")) << 20;
  auto upstream = leat::grpc_door::Upstream::at(args.text("gateway"), static_cast<std::uint64_t>(bytes));
  if (!upstream.ok()) return leat::cli::fail("leat-grpc", upstream.error());
  const auto service = leat::grpc_door::make_service(*upstream);
  grpc::ResourceQuota quota("leat-grpc");
  quota.SetMaxThreads(static_cast<int>(args.integer("calls")) + 2);
  quota.Resize(static_cast<std::size_t>(args.integer("memory-mib")) << 20);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(args.text("listen"), grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.get());
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(bytes);
  builder.SetMaxSendMessageSize(bytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second one is told that the address is taken
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 * 1024);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000);
  // Clients that ask whether it lives, as often as balancers do, are not sent away.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || (port == 0 && !args.text("listen").starts_with("unix:")))
    return leat::cli::fail("leat-grpc", "cannot listen at " + args.text("listen") + "; name a free address");
  if (const int fd = static_cast<int>(args.integer("ready-fd")); fd >= 0) {
    const std::string line = "ready " + std::to_string(port) + "\n";
    (void)!::write(fd, line.data(), line.size());
    (void)::close(fd);
  }
  int which = 0;
  (void)sigwait(&ends, &which);
  server->Shutdown(std::chrono::system_clock::now() + kEnding);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return serve(leat::cli::parse_or_exit(kCommand, argc, argv)); }
