// What passes between the bridge's two threads: crops to leatd, answers back. The door's thread must never wait for
// leatd (a detector's first question is answered whatever leatd does), so all that can wait is the link's.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "tools/base/text/fd.h"
#include "tools/leat/bridge/detector_messages.h"
#include "tools/leat/bridge/model_names.h"

namespace leat::tools {

struct Crop {
  std::uint64_t id = 0;
  std::string model;  // as the detector named it; empty: it never did
  CropLayout layout;
  zmq::message_t tensor;
  std::int64_t received_ns = 0, due_ns = 0;  // CLOCK_MONOTONIC
};

// cause: "completed" or "late", else why the table is zeros: a reason of leatd, or one of the bridge's own. Static.
struct CropAnswer {
  std::uint64_t id = 0;
  std::string_view cause;
  DetectionTable table{};
};

class CropExchange {
 public:
  explicit CropExchange(ModelNames names);
  // ---- the door's thread ----
  void put(Crop crop);
  std::vector<CropAnswer> take_answers();                                 // clears the answers' bell
  [[nodiscard]] int answers_bell() const { return answers_bell_.get(); }  // readable: answers may be there
  void stop();
  // ---- the link's thread ----
  std::deque<Crop> take_crops();  // clears the crops' bell, unless stopped
  void put(CropAnswer answer);
  [[nodiscard]] int crops_bell() const { return crops_bell_.get(); }
  [[nodiscard]] bool stopped() const;
  void set_served(std::vector<std::string> names);
  void set_connected(bool connected);
  // ---- both ----
  [[nodiscard]] Result<std::string> application_of(std::string_view model) const;
  [[nodiscard]] bool connected() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Crop> crops_;
  std::vector<CropAnswer> answers_;
  ModelNames names_;
  bool stopped_ = false, connected_ = false;
  Fd crops_bell_, answers_bell_;
};

}  // namespace leat::tools
