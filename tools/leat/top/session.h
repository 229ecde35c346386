// `leat top` without its terminal and its source: what is known, what the user chose, and the screen that is made of
// both. Pure: a test or a picture drives it as the terminal does. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/leat/top/facts/facts.h"
#include "tools/leat/top/facts/order.h"
#include "tools/leat/top/pages/keys.h"
#include "tools/leat/top/pages/view.h"

namespace leat::tools::top {

class Session {
 public:
  explicit Session(bool replayed = false) : replayed_(replayed) {}
  void take(Observation observation);
  [[nodiscard]] Screen screen(int rows, int columns);

  // What a key asks of whoever drives this; the rest is done here.
  Told key(Action action);
  Told letter(char32_t letter);
  Told click_on(int row, int column);

  [[nodiscard]] View& view() noexcept { return view_; }
  [[nodiscard]] const Facts& facts() const noexcept { return facts_; }
  // The page stands still at a second of the past.
  [[nodiscard]] bool stopped() const noexcept { return stopped_ns_.has_value(); }
  void stop_here();
  void go_on() noexcept { stopped_ns_.reset(); }
  [[nodiscard]] const Second& shown() const { return facts_.seconds()[index_shown()]; }

 private:
  [[nodiscard]] std::size_t index_shown() const noexcept;
  Told after(Told told, const View& before);
  void make_rows();
  [[nodiscard]] Order::Wishes wishes() const;

  Facts facts_;
  View view_;
  Order order_;
  std::vector<Row> rows_;
  Screen last_{Canvas(0, 0)};
  std::optional<std::int64_t> stopped_ns_;
  bool replayed_;
};

}  // namespace leat::tools::top
