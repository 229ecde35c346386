// How a group of questions is asked: every question stands alone, and one that breaks becomes an answer ("failed", with
// the text) instead of the end of its group. Answers go to the probe as they come, so that what was found survives a
// later crash of the group's process. Not thread-safe.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/gpu/processes.h"
#include "bench/gpu/report.h"

namespace leat::probe {

// Thrown inside a question: it has no meaning here, and why.
struct NotApplicable : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Thrown inside a question: a call failed that should not have.
struct ProbeFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Question {
  std::string id;  // "handover.vmm.works"; its first part is the group
  std::string question, how;
  Conditions conditions = {};
};

struct YesNo {
  bool yes = false;
  std::string note = {};
};
struct Samples {
  std::vector<double> values;
  std::string note = {};
};

class Asker {
 public:
  Asker(Channel& channel, bool quick) : channel_(channel), quick_(quick) {}

  void yes_no(const Question& question, const std::function<YesNo()>& find);
  // No samples at all is a failure.
  void number(const Question& question, const std::string& unit, const std::function<Samples()>& measure);
  void not_applicable(const Question& question, const std::string& note);
  void failed(const Question& question, const std::string& note);

  void set_device(std::string uuid) { device_ = std::move(uuid); }
  [[nodiscard]] const std::string& device() const noexcept { return device_; }
  [[nodiscard]] bool quick() const noexcept { return quick_; }
  // Repetitions: as asked for, or a tenth (at least 5) in quick mode.
  [[nodiscard]] int repeats(int full) const noexcept { return quick_ ? std::max(5, full / 10) : full; }

  // The keeper is the probe's: a group asks the probe to have the daemon started or stopped. The environment that
  // makes a child a client of it.
  Result<Environment> start_mps(const std::vector<std::string>& arguments = {});
  Status stop_mps();
  // Sends a command to the running daemon ("get_server_list"); its output.
  Result<std::string> mps_command(const Environment& environment, const std::string& command);

 private:
  Answer blank(const Question& question) const;
  void send(const Answer& answer);
  Channel& channel_;
  bool quick_;
  std::string device_;
  std::string mps_program_;
};

}  // namespace leat::probe
