#include "bench/alternatives/contenders/contender.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace leat::bench::alternatives {

std::span<const Contender> contenders() {
  static constexpr Contender kAll[] = {
      {.name = "process",
       .text = "a process a camera: takes the newest picture again and again",
       .start = start_process_a_camera},
      {.name = "fifo", .text = "a queue of 8 before a worker a core; the oldest gives way", .start = start_fifo},
      {.name = "round-robin",
       .text = "the latest picture of each camera, the cameras in turn",
       .start = start_round_robin},
      {.name = "edf",
       .text = "the latest picture of each camera, the earliest deadline first",
       .by_deadline = true,
       .start = start_edf},
      {.name = "pulled",
       .text = "workers read the newest picture of the camera whose turn it is",
       .start = start_pulled},
      {.name = "leat",
       .text = "leatd as a user starts it, a client thread and connection a camera",
       .by_deadline = true,
       .start = start_leat},
      {.name = "leat-grants",
       .text = "the same, whose clients make the pictures that leatd wants, and no others",
       .by_deadline = true,
       .start = start_leat_grants},
      {.name = "leat-feed",
       .text = "leatd and `leat feed` on the videos",
       .by_deadline = true,
       .of_videos = true,
       .start = start_leat_feed},
      {.name = "leat-gateway",
       .text = "leatd and `leat gateway`, a kept HTTP connection a camera",
       .by_deadline = true,
       .start = start_leat_gateway},
      {.name = "leat-bridge",
       .text = "leatd and `leat bridge zmq`, pictures of 320x320, a socket a camera",
       .by_deadline = true,
       .start = start_leat_bridge},
#ifdef LEAT_BENCH_PYTHON
      {.name = "leat-session",
       .text = "leatd and a Python program a camera with leat.onnxruntime's sessions",
       .by_deadline = true,
       .of_raw = true,
       .start = start_leat_session},
#endif
#ifdef LEAT_BENCH_GSTREAMER
      {.name = "leat-gstreamer",
       .text = "leatd and leatsink, a pipeline a camera",
       .by_deadline = true,
       .start = start_leat_gstreamer},
#endif
  };
  return kAll;
}

const Contender* find_contender(std::string_view name) {
  const auto all = contenders();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.name == name; });
  return at == all.end() ? nullptr : &*at;
}

void join_group(std::string_view group) { ::prctl(PR_SET_NAME, std::string(group).c_str()); }

Status Copies::add(const std::function<Status()>& run, std::string group) {
  std::fflush(nullptr);
  auto process = subprocess::Process::start([&] {
    const Status status = run();
    if (!status) {
      std::fprintf(stderr, "alternatives: %s\n", status.error().c_str());
      std::_Exit(2);
    }
  });
  if (!process.ok()) return Error{process.error()};
  processes_.push_back(std::move(*process));
  groups_.push_back(std::move(group));
  return Done{};
}

std::vector<Member> Copies::members() const {
  std::vector<Member> out;
  for (std::size_t i = 0; i < processes_.size(); ++i) out.push_back({processes_[i].pid(), groups_[i]});
  return out;
}

bool Copies::alive() {
  return std::none_of(processes_.begin(), processes_.end(), [](const auto& p) { return p.has_ended(); });
}

Status Copies::end(subprocess::Deadline by) {
  for (auto& process : processes_)
    if (const auto ending = process.wait(by); !ending.clean())
      return Error{"a process of the contender " + ending.text()};
  return Done{};
}

}  // namespace leat::bench::alternatives
