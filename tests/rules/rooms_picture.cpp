#include "tests/rules/rooms_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/rules/rooms.h"
#include "tests/rules/source_files.h"
#include "tools/base/cli/svg.h"

namespace leat::test {
namespace {

namespace fs = std::filesystem;
using cli::Svg;

constexpr double kBoxWidth = 232, kBoxHeight = 78, kRowGap = 58, kApart = 26, kMargin = 28, kThread = 10;

// A room, or a place where an arrow into a lower room passes a row; arrows to one room share it.
struct Node {
  std::string folder;  // the room, or the arrow's target
  bool box = true;
  double x = 0;  // the middle
  std::vector<std::size_t> above, below;

  [[nodiscard]] double width() const { return box ? kBoxWidth : kThread; }
};

// Without those that a way over other rooms implies.
Arrows reduced(const Arrows& all) {
  std::map<std::string, std::set<std::string>> below;
  for (const auto& [from, to] : all) below[from].insert(to);
  const auto reaches = [&](const auto& self, const std::string& from, const std::string& to) -> bool {
    for (const std::string& next : below[from])
      if (next == to || self(self, next, to)) return true;
    return false;
  };
  Arrows out;
  for (const auto& [from, to] : all) {
    const auto& next = below[from];
    if (std::none_of(next.begin(), next.end(),
                     [&, &to = to](const std::string& n) { return n != to && reaches(reaches, n, to); }))
      out.emplace(from, to);
  }
  return out;
}

// Rooms of one rank are a row, the highest first.
class Layout {
 public:
  Layout(const std::vector<Room>& table, const Arrows& drawn) {
    std::map<int, std::size_t> row_of_rank;
    for (const Room& r : table)
      if (r.rank > 0) row_of_rank[-r.rank];
    for (auto& [rank, row] : row_of_rank) {
      row = rows_.size();
      rows_.emplace_back();
    }
    for (const Room& r : table)
      if (r.rank > 0) add(r.folder, row_of_rank[-r.rank], true);
    for (const auto& [from, to] : drawn) {
      std::size_t at = rooms_.at(from);
      for (std::size_t row = row_of(at) + 1; row < row_of(rooms_.at(to)); ++row) at = link(at, passage(to, row));
      link(at, rooms_.at(to));
    }
    order();
    for (int round = 0; round < 80; ++round) place(round % 2 == 0);
    const double left = std::accumulate(nodes_.begin(), nodes_.end(), 1e9,
                                        [](double min, const Node& n) { return std::min(min, n.x - n.width() / 2); });
    for (Node& n : nodes_) n.x += kMargin - left;
  }

  [[nodiscard]] const std::vector<std::vector<std::size_t>>& rows() const { return rows_; }
  [[nodiscard]] const Node& node(std::size_t index) const { return nodes_[index]; }
  [[nodiscard]] double width() const {
    double right = 0;
    for (const Node& n : nodes_) right = std::max(right, n.x + n.width() / 2);
    return right + kMargin;
  }

 private:
  std::size_t add(const std::string& folder, std::size_t row, bool box) {
    const std::size_t index = nodes_.size();
    nodes_.push_back({.folder = folder, .box = box, .x = 0, .above = {}, .below = {}});
    row_.push_back(row);
    rows_[row].push_back(index);
    if (box) rooms_[folder] = index;
    return index;
  }
  [[nodiscard]] std::size_t row_of(std::size_t node) const { return row_[node]; }
  std::size_t passage(const std::string& to, std::size_t row) {
    const auto [it, fresh] = passages_.try_emplace({to, row}, 0);
    if (fresh) it->second = add(to, row, false);
    return it->second;
  }
  std::size_t link(std::size_t from, std::size_t to) {
    auto& below = nodes_[from].below;
    if (std::find(below.begin(), below.end(), to) == below.end()) {
      below.push_back(to);
      nodes_[to].above.push_back(from);
    }
    return to;
  }

  [[nodiscard]] std::size_t crossings() const {
    std::vector<double> at(nodes_.size());
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) at[row[i]] = static_cast<double>(i);
    std::size_t count = 0;
    for (const auto& row : rows_)
      for (const std::size_t a : row)
        for (const std::size_t b : row)
          for (const std::size_t under_a : nodes_[a].below)
            for (const std::size_t under_b : nodes_[b].below) count += at[a] < at[b] && at[under_a] > at[under_b];
    return count;
  }

  // Neighbours in a row are swapped as long as that leaves fewer crossings, from several first orders.
  void order() {
    auto best = rows_;
    std::size_t fewest = SIZE_MAX;
    for (int start = 0; start < 24; ++start) {
      for (auto& row : rows_) std::next_permutation(row.begin(), row.end());
      for (bool better = true; better;) {
        better = false;
        for (auto& row : rows_)
          for (std::size_t i = 0; i < row.size(); ++i)
            for (std::size_t j = i + 1; j < row.size(); ++j) {
              const std::size_t before = crossings();
              std::swap(row[i], row[j]);
              if (crossings() < before)
                better = true;
              else
                std::swap(row[i], row[j]);
            }
      }
      if (const std::size_t now = crossings(); now < fewest) fewest = now, best = rows_;
    }
    rows_ = best;
  }

  // Every node as near the mean of its neighbours as its row lets it: the order is kept, and the distances.
  void place(bool downwards) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto& row = rows_[downwards ? r : rows_.size() - 1 - r];
      struct Block {
        double sum = 0, weight = 0;
        std::size_t count = 0;
        [[nodiscard]] double mean() const { return sum / weight; }
      };
      std::vector<Block> blocks;
      std::vector<double> offset(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        const Node& n = nodes_[row[i]];
        if (i > 0) offset[i] = offset[i - 1] + (nodes_[row[i - 1]].width() + n.width()) / 2 + kApart;
        double sum = 0;
        for (const std::size_t a : n.above) sum += nodes_[a].x;
        for (const std::size_t b : n.below) sum += nodes_[b].x;
        const auto neighbours = static_cast<double>(n.above.size() + n.below.size());
        const double wish = neighbours > 0 ? sum / neighbours : n.x, weight = n.box ? 1 : 2;
        blocks.push_back({weight * (wish - offset[i]), weight, 1});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
          const Block last = blocks.back();
          blocks.pop_back();
          blocks.back().sum += last.sum, blocks.back().weight += last.weight, blocks.back().count += last.count;
        }
      }
      std::size_t i = 0;
      for (const Block& b : blocks)
        for (std::size_t k = 0; k < b.count; ++k, ++i) nodes_[row[i]].x = b.mean() + offset[i];
    }
  }

  std::vector<Node> nodes_;
  std::vector<std::size_t> row_;
  std::vector<std::vector<std::size_t>> rows_;
  std::map<std::string, std::size_t> rooms_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> passages_;
};

// Folders of a room that are rooms of their own inside it.
std::vector<std::string> inner_rooms(const std::vector<Room>& table, const std::string& folder) {
  std::set<std::string> found;
  for (const std::string& file : sources()) {
    if (room_of(table, file)->folder != folder || file.find("/test/") != std::string::npos) continue;
    std::string rest = file.substr(folder.size());
    if (rest.starts_with("src/")) rest = rest.substr(4);
    if (const std::size_t slash = rest.find('/'); slash != std::string::npos) found.insert(rest.substr(0, slash));
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t columns) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (lines.empty() || lines.back().size() + 1 + word.size() > columns)
      lines.push_back(word);
    else
      lines.back() += " " + word;
  }
  return lines;
}

std::string_view fill_of(const std::string& folder) {
  static constexpr std::pair<std::string_view, std::string_view> kFills[] = {{"engine/", "#e3edf9"},
                                                                             {"planner/", "#e5f2e1"},
                                                                             {"shm/", "#fbeed9"},
                                                                             {"cuda/", "#efe6f5"},
                                                                             {"tools/", "#f4f1e6"}};
  for (const auto& [start, fill] : kFills)
    if (folder.starts_with(start)) return fill;
  return "#ededed";
}

class Drawing {
 public:
  Drawing(const std::vector<Room>& table, const Layout& layout)
      : table_(table), layout_(layout), svg_(layout.width(), height()) {
    for (std::size_t row = 0; row < layout.rows().size(); ++row)
      for (const std::size_t n : layout.rows()[row]) threads(n, row);
    for (std::size_t row = 0; row < layout.rows().size(); ++row)
      for (const std::size_t n : layout.rows()[row])
        if (layout.node(n).box) box(layout.node(n), row);
    foundation();
  }
  [[nodiscard]] std::string str() const { return svg_.str(); }

 private:
  static double top_of(std::size_t row) { return kMargin + static_cast<double>(row) * (kBoxHeight + kRowGap); }
  [[nodiscard]] double height() const { return top_of(layout_.rows().size()) + 72; }

  // Where the arrow to or from `other` meets a node: side by side, in the order of their other ends.
  [[nodiscard]] double port(std::size_t node, std::size_t other, const std::vector<std::size_t>& others) const {
    const Node& n = layout_.node(node);
    if (!n.box) return n.x;
    std::size_t before = 0;
    for (const std::size_t o : others) before += layout_.node(o).x < layout_.node(other).x;
    const double step = std::min(44.0, (kBoxWidth - 40) / static_cast<double>(others.size()));
    return n.x + (static_cast<double>(before) - static_cast<double>(others.size() - 1) / 2) * step;
  }

  void threads(std::size_t node, std::size_t row) {
    static constexpr std::string_view kColour = "#555555";
    const Node& n = layout_.node(node);
    const double bottom = top_of(row) + kBoxHeight;
    if (!n.box) svg_.line(n.x, top_of(row), n.x, bottom, kColour, 1.4);
    for (const std::size_t under : n.below) {
      const double x1 = port(node, under, n.below), x2 = port(under, node, layout_.node(under).above);
      const bool ends = layout_.node(under).box;
      const double from = bottom, to = top_of(row + 1) - (ends ? 10 : 0);
      std::vector<std::pair<double, double>> curve;
      for (int i = 0; i <= 16; ++i) {
        const double t = i / 16.0, s = t * t * (3 - 2 * t);
        curve.emplace_back(x1 + (x2 - x1) * s, from + (to - from) * t);
      }
      svg_.polyline(curve, kColour, 1.4);
      if (ends) svg_.arrow(x2, to, x2, top_of(row + 1), kColour);
    }
  }

  void box(const Node& n, std::size_t row) {
    const double y = top_of(row);
    svg_.box(n.x - kBoxWidth / 2, y, kBoxWidth, kBoxHeight, fill_of(n.folder), "#666666", 6);
    const auto lines = wrapped(inner_rooms(table_, n.folder), 38);
    double at = y + kBoxHeight / 2 + 5 - 7.5 * static_cast<double>(lines.size());
    svg_.text(n.x, at, n.folder.substr(0, n.folder.size() - 1), 15, Svg::Anchor::middle, "#111111", true);
    for (const std::string& line : lines) svg_.text(n.x, at += 15, line, 11, Svg::Anchor::middle, "#444444");
  }

  void foundation() {
    const double y = top_of(layout_.rows().size()) - kRowGap / 2;
    std::vector<std::string> names;
    for (const Room& r : table_)
      if (r.rank == 0) names.push_back(r.folder.substr(0, r.folder.size() - 1));
    const double middle = layout_.width() / 2;
    svg_.box(kMargin, y, layout_.width() - 2 * kMargin, 46, "#fafafa", "#999999", 6);
    svg_.text(middle, y + 20, wrapped(names, 1000).front(), 14, Svg::Anchor::middle, "#111111", true);
    svg_.text(middle, y + 37, "every room may include these", 11, Svg::Anchor::middle, "#444444");
    svg_.text(middle, y + 68, "An arrow: includes. Left out where a way over other rooms says the same.", 12,
              Svg::Anchor::middle, "#444444");
  }

  const std::vector<Room>& table_;
  const Layout& layout_;
  Svg svg_;
};

}  // namespace

std::string rooms_picture() {
  const std::vector<Room> table = rooms();
  const Arrows all = arrows(table);
  const Layout layout(table, reduced(all));
  std::string out = Drawing(table, layout).str() + "<!--\n";
  for (const Room& r : table) {
    out += "room " + r.folder + ", rank " + std::to_string(r.rank) + ":";
    for (const std::string& inner : inner_rooms(table, r.folder)) out += " " + inner;
    out += "\n";
  }
  for (const auto& [from, to] : all) out += from + " includes " + to + "\n";
  return out + "-->\n";
}

}  // namespace leat::test
