// What the user chose, and what a page is made of. A page is a pure function of it: state, size and signs to cells.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/leat/top/facts/facts.h"
#include "tools/leat/top/facts/order.h"
#include "tools/leat/top/pages/canvas.h"
#include "tools/leat/top/pages/filter.h"

namespace leat::tools::top {

enum class Page : std::uint8_t { now, streams, modules, partitions, users, changes, leatd, count_ };
inline constexpr std::size_t kPages = static_cast<std::size_t>(Page::count_);
[[nodiscard]] std::string_view name_of(Page page) noexcept;

// What streams can be sorted by; `suffer` is the order that a page begins with.
enum class Sort : std::uint8_t { suffer, name, in, good, miss, p99, in_flight, busy, count_ };
[[nodiscard]] std::string_view name_of(Sort sort) noexcept;

// How many rows each part of the first page has.
struct Heights {
  int frames = 0, partitions = 0, modules = 0, streams = 0, changes = 0;
};

enum class Look : std::uint8_t { none, stream, partition };

struct View {
  Page page = Page::now;
  Look look = Look::none;
  std::optional<Key> stream;     // the row the cursor is on, and what a look is of
  std::optional<Key> partition;  // the same on the page of partitions
  int cursor_line = 0;           // where its row stands among the rows shown
  std::optional<Heights> held;   // while a cursor stands, so that what comes and goes does not move its row
  int scroll = 0;                // of pages without a cursor
  std::set<Key> pinned;
  Sort sort = Sort::suffer;
  bool reversed = false, frozen = false, tree = true;
  bool open = false;     // the well ones are shown one by one
  bool minutes = false;  // ten minutes in place of one
  bool help = false;
  Filter filter;
  std::string typed;      // of a word that is being typed, with its sign: "/yard"
  std::string notice;     // in place of the keys, once
  std::string recording;  // file that is being written
};

// One row of the list of streams.
struct Row {
  enum class Kind : std::uint8_t { stream, group, well } kind = Kind::stream;
  Key key;                // of a stream
  std::string text;       // application, or the names of those who are well
  std::vector<Key> keys;  // of the well ones
  bool rest = false;      // not only well ones: what had no place
};

struct Scene {
  const Facts& facts;
  std::size_t at = 0;  // which of facts.seconds() is shown
  const View& view;
  const std::vector<Row>& rows;
  bool replayed = false;  // of a recording
  [[nodiscard]] const Second& second() const { return facts.seconds()[at]; }
  [[nodiscard]] bool back() const { return at + 1 < facts.seconds().size(); }
};

// What a place on the screen does when it is clicked.
struct Hit {
  enum class What : std::uint8_t { row, key, sort, time, partition };
  int row = 0, from = 0, end = 0;
  What what = What::row;
  Key key;        // of a row
  int value = 0;  // the key, the Sort, or the seconds that a cell of a graph is wide
};

struct Screen {
  Canvas canvas;
  std::vector<Hit> hits{};
  int stream_lines = 0;  // rows of streams that fit, for paging
  Heights heights{};     // of the first page
};

// Rows of the list: groups where there are several applications, those who suffer, and the well ones folded where not
// all fit into `height` and they are not opened.
[[nodiscard]] std::vector<Row> rows_of(const Second& second, const std::vector<Order::Group>& groups, const View& view);
// Of these, as shown: the well rows of each group as one.
[[nodiscard]] std::vector<Row> folded(const std::vector<Row>& rows, const Second& second, std::size_t height,
                                      bool open);

[[nodiscard]] Screen make_screen(const Scene& scene, int rows, int columns);

}  // namespace leat::tools::top
