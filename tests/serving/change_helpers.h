// What tests of changes while serving share: asking for one and waiting for its end, and clients that keep frames under
// way and note what became of each.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/client.hpp"
#include "leat/result_parts.h"
#include "shm/src/protocol/control_protocol.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {

inline int times(int usual) {
  const char* const asked = std::getenv("LEAT_CHANGES");
  return asked == nullptr ? usual : std::atoi(asked);
}

inline Json change(const Leatd& leatd) {
  const auto status = Json::try_parse(leatd.status_json());
  return status ? status->value("change", Json()) : Json();
}

inline shm::Change of_kind(shm::ChangeKind kind, const std::string& name = {}) {
  shm::Change out;
  out.kind = kind;
  out.trial_ns = 300'000'000;
  shm::set_text(out.name, name);
  return out;
}

// Asks, and waits for the end of it. What became of it.
inline Json changed(const Leatd& leatd, const shm::Change& what, const std::string& text = {}) {
  leat_error error{};
  auto observer = shm::Observer::connect(leatd.socket(), &error);
  if (!observer.ok()) return {{"state", "no leatd"}, {"line", observer.error()}};
  const auto number = observer->change(what, text, &error);
  if (!number.ok()) return {{"state", "refused"}, {"line", number.error()}};
  Json last;
  const bool over = eventually(
      [&] {
        last = change(leatd);
        return last.is_object() && last.at("number").get<std::uint64_t>() == *number && last.at("over").get<bool>();
      },
      std::chrono::milliseconds(60000));
  EXPECT_TRUE(over) << last.dump() << leatd.log();
  return last;
}

// Processes that leatd has started and that run now.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t pid = 0; file >> pid;) out.push_back(pid);
  return out;
}

inline std::string state(const Json& change) { return change.at("state").get<std::string>(); }
inline std::string line(const Json& change) { return change.at("line").get<std::string>(); }

// A client that keeps some frames of one application under way, on a thread of its own.
class Load {
 public:
  Load(const Leatd& leatd, const std::string& application, std::uint32_t side = 16,
       leat_format format = LEAT_FORMAT_rgb24)
      : client_(std::move(Client::connect(leatd.socket(), "load")).value()) {
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = application.c_str(), o.format = format, o.width = o.height = side, o.depth = 4;
    o.overload = LEAT_OVERLOAD_never_drop;  // whatever else this machine does
    auto stream = client_.open_stream(o);
    EXPECT_TRUE(stream.ok()) << stream.error() << leatd.log();
    if (!stream.ok()) return;
    stream_ = std::move(*stream);
    thread_ = std::thread([this] { run(); });
  }
  ~Load() { end(); }
  void end() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // From the answers that had a result: which version answered which of the stream's frames, in the order of frames.
  [[nodiscard]] std::uint64_t served() { return outcomes[Outcome::completed] + outcomes[Outcome::late]; }
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t> versions() const { return version_of_; }
  std::map<Outcome, std::uint64_t> outcomes;
  std::map<std::uint64_t, std::string> said;  // by version: all its answers to the one picture are the same
  std::uint64_t submitted = 0, answered = 0, mixed = 0;
  std::atomic<std::uint64_t> so_far{0}, in_time{0};

 private:
  void run() {
    std::uint64_t under_way = 0;
    while (!ending_ || under_way > 0) {
      for (; !ending_ && under_way < 4; ++under_way) {
        auto frame = stream_.acquire();
        if (!frame) break;
        for (std::uint64_t i = 0; i < frame->raw().bytes; ++i)
          frame->raw().planes[0][i] = static_cast<std::uint8_t>(i * 7);
        frame_of_[frame->raw().slot] = ++submitted;
        if (frame->submit() != LEAT_ERROR_ok) return;
      }
      const auto answer = client_.next_answer(std::chrono::seconds(40));
      if (!answer) return;
      --under_way;
      ++answered;
      so_far = answered;
      ++outcomes[answer->outcome()];
      in_time += answer->outcome() == Outcome::completed ? 1 : 0;
      note(*answer);
    }
  }
  void note(const Answer& answer) {
    leat_part_view part;
    if (answer.result() == nullptr) return;
    version_of_[frame_of_[answer.raw().slot]] = answer.model_version();
    if (leat_part_at(answer.result(), answer.raw().result_bytes, 0, &part) == 0) return;
    const std::string bytes(static_cast<const char*>(part.data), part.bytes);
    const auto [at, first] = said.emplace(answer.model_version(), bytes);
    mixed += !first && at->second != bytes ? 1 : 0;
  }
  Client client_;
  Stream stream_;
  std::map<std::uint32_t, std::uint64_t> frame_of_;
  std::map<std::uint64_t, std::uint64_t> version_of_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

inline void expect_balance(const Leatd& leatd) {
  const auto total = leatd.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(balances(*total));
}

inline void expect_all_answered(Load& load, const Leatd& leatd) {
  load.end();
  EXPECT_EQ(load.submitted, load.answered) << leatd.log();
  expect_balance(leatd);
}

inline void expect_sound(Load& load, const Leatd& leatd) {
  expect_all_answered(load, leatd);
  EXPECT_EQ(load.mixed, 0U);
  EXPECT_EQ(load.outcomes[Outcome::failed], 0U) << leatd.log();
}

// Of a plan: "p0", "p1" and so on.
inline Json emulated_partitions(std::size_t count) {
  Json out = Json::array();
  for (std::size_t p = 0; p < count; ++p)
    out.push_back({{"name", "p" + std::to_string(p)},
                   {"kind", "emulated"},
                   {"class", "p"},
                   {"share", 1},
                   {"size", 1},
                   {"price", 1},
                   {"device", p},
                   {"host", 0},
                   {"selector", ""}});
  return out;
}

// A plan for the applications 'a' to 'd' by what each partition holds, and a configuration for it in which partitions
// have room for so much; each model takes 100 MiB.
inline std::string sets_plan(const std::vector<std::string>& holds) {
  Json applications = Json::array(), routes = Json::array();
  for (const char name : std::string("abcd")) {
    const std::string word(1, name);
    Json pool = Json::array();
    for (std::size_t p = 0; p < holds.size(); ++p)
      if (holds[p].find(name) != std::string::npos) pool.push_back(p);
    applications.push_back({{"name", word},
                            {"slo_ns", 2'000'000'000},
                            {"rate_rps", 50},
                            {"weight", 1},
                            {"module", {{{"name", "m"}, {"model", "m"}}}}});
    const Json latency = {{"p50_ns", 2'000'000}, {"p99_ns", 2'000'000}, {"samples", 0}};
    routes.push_back({{"application", applications.size() - 1},
                      {"module", 0},
                      {"batch", 1},
                      {"rate_rps", 50},
                      {"stages",
                       {{{"first_block", 0},
                         {"end_block", 1},
                         {"pool", pool},
                         {"transfer_bytes", 0},
                         {"latency_by_batch", {latency}}}}}});
  }
  return Json{{"schema", "leat-plan/1"},
              {"applications", applications},
              {"partitions", emulated_partitions(holds.size())},
              {"hosts", Json::array()},
              {"routes", routes},
              {"budget_ns", Json::array()},
              {"certificate",
               {{"objective", 1}, {"upper_bound", 1}, {"gap", 0}, {"binding", ""}, {"method", ""}, {"seconds", 0}}}}
      .dump();
}

inline std::string sets_config(const std::string& plan, int partitions, int room_mib) {
  std::string out = "[daemon]\nplan = \"" + plan + "\"\n";
  for (int p = 0; p < partitions; ++p)
    out += "[[partition]]\nname = \"p" + std::to_string(p) +
           "\"\nclass = \"p\"\nkind = \"emulated\"\nmemory_mib = " + std::to_string(room_mib) + "\n";
  for (const char* name : {"a", "b", "c", "d"})
    out += std::string("[[application]]\nname = \"") + name +
           "\"\nslo_ms = 2000\n[[application.module]]\nname = \"m\"\nlatency_ms = [2]\nmemory_mib = 100\n";
  return out;
}

inline std::string partitions(int count) {
  return "[[partition]]\nname = \"p\"\nkind = \"emulated\"\ncount = " + std::to_string(count) + "\n";
}
inline std::string emulated(const std::string& name, const std::string& latency = "[1.0, 1.5]") {
  return "[[application]]\nname = \"" + name + "\"\nslo_ms = 500\n[[application.module]]\nname = \"m\"\nbatch = 2\n" +
         "latency_ms = " + latency + "\n";
}

}  // namespace leat::test
