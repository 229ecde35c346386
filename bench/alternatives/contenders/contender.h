// What is put beside each other: ways to run the same models on the same cameras. A file for each; contender.cpp lists
// them. A contender begins when its record says so, decides every picture, and ends by itself behind the last.
// Thread rule: one thread, which must be the process's only one (processes are forked).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/alternatives/parties.h"
#include "bench/alternatives/pictures.h"
#include "bench/alternatives/record.h"
#include "leat/result.hpp"
#include "tools/base/subprocess/process.h"

namespace leat::bench::alternatives {

struct Run {
  const Pictures* pictures = nullptr;
  Record* record = nullptr;
  std::uint32_t cameras = 1;
  Parties parties = Parties::alike;
  std::int64_t deadline_ns = 0;      // from a picture's due time
  std::vector<std::uint32_t> cores;  // that may be used
  std::string leatd;
};

// A process of a contender. Its threads count for `group`; where that is empty, each for the group of its own name.
struct Member {
  pid_t pid = 0;
  std::string group;
};
inline constexpr std::string_view kWorkers = "workers", kClients = "clients", kLeatd = "leatd";

class Running {
 public:
  virtual ~Running() = default;                                       // ends what still runs
  [[nodiscard]] virtual std::uint32_t ready_at() const { return 1; }  // as many say that they are ready
  [[nodiscard]] virtual std::vector<Member> members() const = 0;
  virtual bool alive() = 0;                         // all of it
  virtual Status end(subprocess::Deadline by) = 0;  // waits until it has ended by itself
};

struct Contender {
  std::string_view name, text;
  bool by_deadline = false;  // what it does depends on the deadline
  bool of_videos = false;    // there must be some
  bool of_raw = false;       // it cannot decode
  Result<std::unique_ptr<Running>> (*start)(const Run& run) = nullptr;
};
std::span<const Contender> contenders();
const Contender* find_contender(std::string_view name);

// Processes that are copies of this one, each with a function.
class Copies final : public Running {
 public:
  // An error that `run` returns is printed, and ends the process with status 2.
  Status add(const std::function<Status()>& run, std::string group);
  [[nodiscard]] std::uint32_t ready_at() const override { return static_cast<std::uint32_t>(processes_.size()); }
  [[nodiscard]] std::vector<Member> members() const override;
  bool alive() override;
  Status end(subprocess::Deadline by) override;

 private:
  std::vector<subprocess::Process> processes_;
  std::vector<std::string> groups_;
};

void join_group(std::string_view group);  // the calling thread

Result<std::unique_ptr<Running>> start_process_a_camera(const Run& run);
Result<std::unique_ptr<Running>> start_fifo(const Run& run);
Result<std::unique_ptr<Running>> start_round_robin(const Run& run);
Result<std::unique_ptr<Running>> start_edf(const Run& run);
Result<std::unique_ptr<Running>> start_pulled(const Run& run);
Result<std::unique_ptr<Running>> start_leat(const Run& run);
Result<std::unique_ptr<Running>> start_leat_grants(const Run& run);
Result<std::unique_ptr<Running>> start_leat_feed(const Run& run);
Result<std::unique_ptr<Running>> start_leat_gateway(const Run& run);
Result<std::unique_ptr<Running>> start_leat_bridge(const Run& run);
Result<std::unique_ptr<Running>> start_leat_session(const Run& run);
Result<std::unique_ptr<Running>> start_leat_gstreamer(const Run& run);

}  // namespace leat::bench::alternatives
