#include "bench/alternatives/contenders/leatd_run.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/serving/leatd_child.h"
#include "bench/serving/shapes_application.h"
#include "tools/base/subprocess/descendants.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::chrono::seconds kToServe{60};

Status open_to_all(const std::string& folder) {
  return ::chmod(folder.c_str(), 0755) == 0 ? Status(Done{}) : Error{"other users cannot be let into " + folder};
}

Status become(uid_t user) {
  if (::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0)
    return Done{};
  return Error{"only root can connect as two users"};
}

class LeatdRun final : public Running {
 public:
  Status start(const Run& run, const Clients& clients, const std::string& given) {
    const auto application = given.empty() ? shapes_application({.slo_ms = static_cast<double>(run.deadline_ns) / 1e6})
                                           : Result<std::string>(given);
    if (!application.ok()) return Error{application.error()};
    const bool users = run.parties == Parties::users;  // each camera of theirs is a connection
    const std::string mode = users ? "socket_mode = \"0666\"\n" : "";
    const std::string limits = users ? "\n[limits.user]\nsessions = 64\n" : "";
    auto daemon = LeatdChild::start(run.leatd, mode + *application + limits, "cpu = \"auto\"\n");
    if (!daemon.ok()) return Error{daemon.error()};
    daemon_ = std::move(*daemon);
    if (const Status serves = daemon_->serves(kToServe); !serves) return serves;
    if (!users) return add(clients, 0);
    if (const Status opened = open_to_all(daemon_->folder()); !opened) return opened;
    const auto as_user = [&](const std::string& socket, std::uint32_t party) {
      const Status became = become(user_of(party));
      return became ? clients(socket, party) : became;
    };
    if (const Status first = add(as_user, 0); !first) return first;
    return add(as_user, 1);
  }

  [[nodiscard]] std::uint32_t ready_at() const override { return clients_.ready_at(); }

  [[nodiscard]] std::vector<Member> members() const override {
    std::vector<Member> out = clients_.members();
    for (const Member& client : clients_.members())
      for (const pid_t program : subprocess::children_of(client.pid)) out.push_back({program, std::string(kClients)});
    out.push_back({daemon_->pid(), std::string(kLeatd)});
    for (const pid_t worker : subprocess::children_of(daemon_->pid())) out.push_back({worker, std::string(kWorkers)});
    return out;
  }
  bool alive() override { return daemon_->alive() && clients_.alive(); }
  Status end(subprocess::Deadline by) override { return clients_.end(by); }

 private:
  Status add(const Clients& clients, std::uint32_t party) {
    return clients_.add([&, party] { return clients(daemon_->socket(), party); }, std::string(kClients));
  }

  std::unique_ptr<LeatdChild> daemon_;
  Copies clients_;
};

}  // namespace

Result<std::unique_ptr<Running>> start_with_leatd(const Run& run, const Clients& clients,
                                                  const std::string& application) {
  auto out = std::make_unique<LeatdRun>();
  if (const Status started = out->start(run, clients, application); !started) return Error{started.error()};
  return std::unique_ptr<Running>(std::move(out));
}

}  // namespace leat::bench::alternatives
