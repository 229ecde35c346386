#include "bench/serving/leatd_child.h"

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/serving/peers.h"

namespace leat::bench {

Result<std::unique_ptr<LeatdChild>> LeatdChild::start(const std::string& leatd, const std::string& config,
                                                      const std::string& first) {
  std::error_code none;
  if (!std::filesystem::exists(leatd, none))
    return Error{"there is no " + leatd + "; build it, or name it with --leatd"};
  char folder[] = "/tmp/leat-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return Error{"no folder can be made in /tmp"};
  std::unique_ptr<LeatdChild> d(new LeatdChild);
  d->folder_ = folder;
  const std::string file = d->folder_ + "/leat.toml";
  std::ofstream(file) << first << "[daemon]\nsocket = \"" << d->socket() << "\"\nlog_level = \"error\"\n" << config;
  const Unpinned everywhere;
  auto process = subprocess::Process::start({.words = {leatd, file}});
  if (!process.ok()) return Error{process.error()};
  d->process_ = std::move(*process);
  return d;
}

LeatdChild::~LeatdChild() {
  process_.signal(SIGTERM);
  process_.wait(subprocess::after(std::chrono::seconds(60)));
  std::error_code none;
  std::filesystem::remove_all(folder_, none);
}

Status LeatdChild::serves(std::chrono::seconds limit) {
  const auto until = subprocess::after(limit);
  while (alive() && subprocess::Clock::now() < until) {
    if (auto client = Client::connect(socket(), "benchmark"); client) return Done{};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Error{std::string("leatd did not serve: ") + leat_last_error()};
}

Result<Connection> connect(LeatdChild& daemon, const std::string& name, const leat_stream_options& options,
                           std::chrono::seconds limit) {
  const auto until = subprocess::after(limit);
  while (daemon.alive() && subprocess::Clock::now() < until) {
    if (auto client = Client::connect(daemon.socket(), name.c_str()); client)
      if (auto stream = client->open_stream(options); stream)
        return Connection{.client = std::move(*client), .stream = std::move(*stream)};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{std::string("leatd did not serve: ") + leat_last_error()};
}

std::string built(const std::string& path) {
  std::error_code none;
  return (std::filesystem::read_symlink("/proc/self/exe", none).parent_path().parent_path() / path).string();
}

std::string leatd_beside() { return built("engine/daemon/leatd"); }

}  // namespace leat::bench
