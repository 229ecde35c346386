// From what leatd serves to what it is to serve next: read, checked, deployed, laid beside what runs. Takes as long as
// reading and hashing models takes, so it is done on a thread of its own. Errors are one line.
//
// Thread rule: TargetBuilder on the control thread, which watches fd(); the functions are pure but for the files they
// read, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/daemon/changes/arrangement.h"
#include "engine/daemon/changes/in_place.h"
#include "engine/daemon/changes/wanted.h"
#include "engine/daemon/clients/served_application.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"
#include "shm/src/rings/doorbell.h"

namespace leat::daemon {

struct Exchange;

// What is in force, as far as it says what plans are made of.
struct Running {
  Config config;
  Deployment deployment;
  std::vector<worker::Ready> ready;  // [partition]
  std::uint32_t slots = 0;
  // Of a change in several steps the second and later ones: what was served before the first.
  std::shared_ptr<const Deployment> before = {};
  bool back = false;  // what is out comes back as it was
  // Of an exchange the second and third steps: which, from 1.
  std::shared_ptr<const Exchange> exchange = {};
  std::size_t step = 0;
};

// All of a change that gives one half of the partitions after the other a new version (in_place.h): what is wanted in
// the end, and what comes of it in the second step.
struct Exchange {
  Config config;
  Deployment wanted;
  std::vector<Arrangement::Heir> heirs;
  std::vector<std::uint32_t> retiring;
  Additions additions;
  Halves halves;
};

struct Target {
  ChangeRequest request;
  Additions additions;  // with it
  Config config;
  Deployment deployment;  // slots given
  std::vector<Arrangement::Heir> heirs;
  std::vector<std::uint32_t> retiring;
  std::vector<std::uint8_t> fresh;                // [partition]: gets a new worker
  std::vector<std::vector<std::uint32_t>> waves;  // of those
  // Where memory has no room for new workers beside the old: what is out, now and in the steps behind this one.
  std::vector<std::vector<std::string>> in_place;
  std::shared_ptr<const Exchange> exchange;  // of its first step
  std::vector<std::string> moves;            // models that come to partitions or go from them, a line each
};

Result<Target> find_target(const Running& running, const Additions& additions, const ChangeRequest& request);

// Plans in which both have a part, since requests of applications that retire are still under way: `now` with the
// routes of `before` for those applications, on the workers that `before` has. heirs: streams that go over.
struct Both {
  Config config;
  Deployment deployment;
};
[[nodiscard]] Both both(const Config& now, const Deployment& deployment, const Config& before,
                        const Deployment& before_deployment, std::span<const std::uint32_t> retiring);
// `of` with what the other has numbered since: retired there.
void widen(Config& config, Deployment& deployment, const Config& other);

class TargetBuilder {
 public:
  static Result<std::unique_ptr<TargetBuilder>> create();
  ~TargetBuilder();
  void begin(Running running, Additions additions, ChangeRequest request);  // none is under way
  [[nodiscard]] int fd() const noexcept { return bell_.fd(); }
  [[nodiscard]] std::optional<Result<Target>> take();  // none: it is not done

 private:
  explicit TargetBuilder(shm::Doorbell bell) : bell_(std::move(bell)) {}
  shm::Doorbell bell_;
  std::mutex mutex_;
  std::optional<Result<Target>> made_;
  std::thread thread_;
};

}  // namespace leat::daemon
