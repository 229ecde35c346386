#include "bench/alternatives/contenders/leatd_run.h"

#include "bench/serving/leatd_child.h"
#include "bench/serving/shapes_application.h"
#include "tools/base/subprocess/descendants.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::chrono::seconds kToServe{60};

class LeatdRun final : public Running {
 public:
  Status start(const Run& run, const std::function<Status(const std::string&)>& clients) {
    const auto application = shapes_application({.slo_ms = static_cast<double>(run.deadline_ns) / 1e6});
    if (!application.ok()) return Error{application.error()};
    auto daemon = LeatdChild::start(run.leatd, *application, "cpu = \"auto\"\n");
    if (!daemon.ok()) return Error{daemon.error()};
    daemon_ = std::move(*daemon);
    if (const Status serves = daemon_->serves(kToServe); !serves) return serves;
    const std::string socket = daemon_->socket();
    return clients_.add([&] { return clients(socket); }, std::string(kClients));
  }

  [[nodiscard]] std::vector<Member> members() const override {
    std::vector<Member> out = clients_.members();
    for (const pid_t program : subprocess::children_of(out.front().pid))
      out.push_back({program, std::string(kClients)});
    out.push_back({daemon_->pid(), std::string(kLeatd)});
    for (const pid_t worker : subprocess::children_of(daemon_->pid())) out.push_back({worker, std::string(kWorkers)});
    return out;
  }
  bool alive() override { return daemon_->alive() && clients_.alive(); }
  Status end(subprocess::Deadline by) override { return clients_.end(by); }

 private:
  std::unique_ptr<LeatdChild> daemon_;
  Copies clients_;
};

}  // namespace

Result<std::unique_ptr<Running>> start_with_leatd(const Run& run,
                                                  const std::function<Status(const std::string& socket)>& clients) {
  auto out = std::make_unique<LeatdRun>();
  if (const Status started = out->start(run, clients); !started) return Error{started.error()};
  return std::unique_ptr<Running>(std::move(out));
}

}  // namespace leat::bench::alternatives
