// The bridge's side towards leatd: an ordinary client with a stream for each application and size of crop, which comes
// back by itself when leatd does. Its thread may wait for leatd.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_set>

#include "leat/leat.h"
#include "tools/leat/bridge/crop_exchange.h"

namespace leat::tools {

struct LinkOptions {
  std::string socket;       // empty: leat_default_socket()
  std::int64_t slo_ns = 0;  // from a crop's arrival
  std::uint32_t depth = 0;  // crops of one stream waiting or running at once
  std::uint32_t priority = LEAT_PRIORITY_NORMAL;
  bool bgr = false;  // the crops' channels, which their messages do not tell
};

class LeatdLink {
 public:
  LeatdLink(CropExchange& exchange, LinkOptions options);
  ~LeatdLink();  // tells its thread to end, and waits for it
  LeatdLink(const LeatdLink&) = delete;
  LeatdLink& operator=(const LeatdLink&) = delete;

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::uint32_t>;  // application, width, height
  struct Opened {
    leat_stream* stream = nullptr;  // nullptr: refused
    std::string_view cause;         // of the refusal
    std::int64_t again_ns = 0;      // when a refused one is asked for again
    FloatRange range = FloatRange::one;
  };

  void run();
  void wait();
  void connect();
  void let_go();
  void send_waiting();
  bool send(Crop& crop);  // false: every slot is in use
  void write(const Crop& crop, Opened& to, const leat_frame& frame) const;
  void take_answers();
  Opened& opened(const Key& key);
  void open(const Key& key, Opened& entry);
  void zeros(const Crop& crop, std::string_view cause);
  void say(const std::string& line);

  CropExchange& exchange_;
  const LinkOptions options_;
  std::unique_ptr<leat_client, decltype(&leat_disconnect)> client_{nullptr, leat_disconnect};
  std::map<Key, Opened> streams_;
  std::unordered_set<std::uint64_t> in_flight_;
  std::deque<Crop> waiting_;
  bool lost_ = false;  // the connection, or what opens streams on it
  std::int64_t connect_again_ns_ = 0;
  std::string said_;
  std::thread thread_;
};

}  // namespace leat::tools
