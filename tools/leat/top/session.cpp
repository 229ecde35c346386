#include "tools/leat/top/session.h"

#include <algorithm>

namespace leat::tools::top {
namespace {

double of(float value) { return known(value) ? value : -1; }

const Worth* worth_of(Sort sort) {
  static const Worth kIn = [](const StreamFigures& s) { return of(s.in); };
  static const Worth kGood = [](const StreamFigures& s) { return of(s.good); };
  static const Worth kMiss = [](const StreamFigures& s) { return of(s.miss); };
  static const Worth kP99 = [](const StreamFigures& s) { return of(s.p99); };
  static const Worth kFlying = [](const StreamFigures& s) { return of(s.in_flight); };
  static const Worth kBusy = [](const StreamFigures& s) { return of(s.busy); };
  switch (sort) {
    case Sort::in:
      return &kIn;
    case Sort::good:
      return &kGood;
    case Sort::miss:
      return &kMiss;
    case Sort::p99:
      return &kP99;
    case Sort::in_flight:
      return &kFlying;
    case Sort::busy:
      return &kBusy;
    default:
      return nullptr;
  }
}

}  // namespace

Order::Wishes Session::wishes() const {
  Order::Wishes out;
  out.by = worth_of(view_.sort);
  out.by_name = view_.sort == Sort::name;
  out.reversed = view_.reversed;
  out.frozen = view_.frozen;
  out.cursor = view_.stream;
  out.pinned = view_.pinned;
  return out;
}

std::size_t Session::index_shown() const noexcept {
  const auto& seconds = facts_.seconds();
  if (!stopped_ns_) return seconds.size() - 1;
  const auto at = std::upper_bound(seconds.begin(), seconds.end(), *stopped_ns_,
                                   [](std::int64_t ns, const Second& s) { return ns < s.at_ns; });
  return at == seconds.begin() ? 0 : static_cast<std::size_t>(at - seconds.begin()) - 1;
}

// Of a second of the past, the order is made anew: who suffered then is not who suffers now.
void Session::make_rows() {
  const Second& second = shown();
  if (stopped_ns_ && index_shown() + 1 < facts_.seconds().size()) {
    Order then;
    then.sort_now();
    Order::Wishes wanted = wishes();
    wanted.frozen = false;
    rows_ = rows_of(second, then.step(second, wanted), view_);
    return;
  }
  rows_ = rows_of(second, order_.step(second, wishes()), view_);
}

void Session::take(Observation observation) {
  facts_.take(std::move(observation));
  if (stopped_ns_) (void)order_.step(facts_.seconds().back(), wishes());
  make_rows();
}

Screen Session::screen(int rows, int columns) {
  if (facts_.seconds().empty()) return {Canvas(rows, columns)};
  const bool same_size = rows == last_.canvas.rows() && columns == last_.canvas.columns();
  if (!view_.stream || view_.page != Page::now || view_.look != Look::none || !same_size)
    view_.held.reset();
  else if (!view_.held && last_.heights.streams > 0)
    view_.held = last_.heights;
  const Scene scene{facts_, index_shown(), view_, rows_, replayed_};
  last_ = make_screen(scene, rows, columns);
  return last_;
}

void Session::stop_here() {
  if (!facts_.seconds().empty()) stopped_ns_ = shown().at_ns;
}

Told Session::after(Told told, const View& before) {
  if (facts_.seconds().empty()) return told;
  if (told.pause && !replayed_) {
    if (stopped_ns_)
      go_on();
    else
      stop_here();
  }
  if (told.newest) go_on();
  if (told.step_seconds != 0) {
    const std::int64_t first = facts_.seconds().front().at_ns, last = facts_.seconds().back().at_ns;
    const std::int64_t to = shown().at_ns + told.step_seconds * kSecondNs;
    if (to >= last)
      go_on();
    else
      stopped_ns_ = std::max(to + kSecondNs / 4, first);  // seconds are not exactly a second apart
  }
  if (view_.sort != before.sort || view_.reversed != before.reversed || view_.pinned != before.pinned)
    order_.sort_now();
  make_rows();
  return told;
}

Told Session::key(Action action) {
  if (facts_.seconds().empty()) return {.quit = action == Action::quit};
  const View before = view_;
  return after(act(action, shown(), rows_, last_.stream_lines, &view_), before);
}

Told Session::letter(char32_t letter) {
  if (facts_.seconds().empty()) return {.quit = letter == U'q'};
  const View before = view_;
  if (type(letter, shown(), rows_, last_.stream_lines, &view_)) return after({}, before);
  const Action action = action_of(letter, replayed_);
  // Any key leaves the help page.
  return key(action == Action::none && view_.help ? Action::back : action);
}

Told Session::click_on(int row, int column) {
  if (facts_.seconds().empty()) return {};
  const View before = view_;
  const Screen last = last_;
  return after(click(last, row, column, shown(), rows_, &view_), before);
}

}  // namespace leat::tools::top
