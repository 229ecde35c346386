#include <algorithm>

#include "engine/exec/executor_module.h"

namespace leat::exec {

bool ExecutorModule::fail_all(std::span<ItemReport> reports, std::string_view why) noexcept {
  session_.set_error(why);
  std::fill(reports.begin(), reports.end(), ItemReport{.reason = Reason::model_error});
  return false;
}

const char* ExecutorModule::wrong_with(std::span<const Item> items, const std::byte* features_in,
                                       const std::byte* features_out) const noexcept {
  std::uint32_t rows = 0;
  for (const Item& item : items) rows += item.rows;
  // Where sizes vary more small pictures come than large ones; those of a size run batch_max at a time.
  const std::uint32_t max = inputs().varies() ? kMaxRows : spec_.batch_max;
  if (rows == 0 || rows > max) return "the batch is empty or larger than this module's batch";
  if ((features_in == nullptr) != spec_.first_stage || (features_out == nullptr) != spec_.last_stage)
    return "features were given to a stage that has none, or none to one that has";
  return nullptr;
}

void ExecutorModule::look_at(std::span<const Item> items, std::span<Region> regions,
                             std::span<ItemReport> reports) const noexcept {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool there = region_of(items[i].result, items[i].detection, cut_, &regions[i]);
    reports[i] = {.reason = there || takes_frames_ || !spec_.first_stage ? Reason::none : Reason::bad_frame};
  }
}

bool ExecutorModule::run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in,
                         std::byte* features_out) noexcept {
  const char* const wrong = wrong_with(items, features_in, features_out);
  if (wrong != nullptr || reports.size() < items.size())
    return fail_all(reports, wrong != nullptr ? wrong : "there are more items than reports");
  std::span<Region> regions = rooms_.front()->regions;
  look_at(items, regions, reports);
  if (inputs().varies()) return run_by_size(items, reports);
  const Chosen chosen = Chosen(kAll).first(items.size());
  if (!one_item_a_run_ || features_in != nullptr)
    return run_together(items, reports, regions, chosen, features_in, features_out);
  bool good = true;  // an item that fails does so alone
  for (std::size_t i = 0; i < items.size(); ++i)
    good = run_together(items, reports, regions, chosen.subspan(i, 1), features_in, features_out) && good;
  return good;
}

bool ExecutorModule::run_together(std::span<const Item> items, std::span<ItemReport> reports,
                                  std::span<const Region> regions, Chosen chosen, const std::byte* features_in,
                                  std::byte* features_out) noexcept {
  const Together batch{*rooms_.front(), items, reports, regions, chosen};
  if (!prepare(batch, features_in, features_out, {})) return true;
  execute(batch.room);
  return tell(batch);
}

// Items of one size together, in the order of each size's first.
bool ExecutorModule::run_by_size(std::span<const Item> items, std::span<ItemReport> reports) noexcept {
  std::array<Size, kMaxRows> sizes;
  std::span<Region> regions = rooms_.front()->regions;
  bool good = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (reports[i].reason == Reason::none) {
      const Pieces pieces = inputs().pieces_of(items[i].frame, regions[i]);
      reports[i].squeezed = pieces.squeezed;
      if (pieces.count > 1) {
        good = run_in_pieces(items[i], regions[i], pieces, reports[i]) && good;
        continue;
      }
      regions[i].piece = pieces.at(0);
      sizes[i] = inputs().size_of(items[i].frame, regions[i]);
    }
    if (!one_item_a_run_ && items[i].rows > spec_.batch_max) sizes[i] = {};
    if (sizes[i] == Size{}) reports[i].reason = Reason::bad_frame;
  }
  for (std::size_t first = 0; first < items.size(); ++first) {
    const Size size = sizes[first];
    if (size == Size{}) continue;  // unusable, or has run with another
    std::array<std::uint8_t, kMaxRows> together;
    std::size_t count = 0;
    std::uint32_t rows = 0;
    for (std::size_t i = first; i < items.size(); ++i) {
      if (sizes[i] != size || (one_item_a_run_ ? count == 1 : rows + items[i].rows > spec_.batch_max)) continue;
      together[count++] = static_cast<std::uint8_t>(i);
      rows += items[i].rows;
      sizes[i] = {};
    }
    inputs().set_size(size);
    good = run_together(items, reports, regions, {together.data(), count}, nullptr, nullptr) && good;
  }
  return good;
}

// A wide item: its pieces are the rows of batches, one size after the other, and its answer comes with the last.
bool ExecutorModule::run_in_pieces(const Item& item, const Region& region, const Pieces& pieces,
                                   ItemReport& report) noexcept {
  std::array<Item, kMaxPieces> items;
  std::array<ItemReport, kMaxPieces> reports;
  std::array<Region, kMaxPieces> regions;
  std::array<std::uint8_t, kMaxPieces> places;
  std::array<Size, kMaxPieces> sizes;
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    places[i] = static_cast<std::uint8_t>(i);
    items[i] = item, items[i].rows = 1;
    regions[i] = region, regions[i].piece = pieces.at(i);
    sizes[i] = inputs().size_of(item.frame, regions[i]);
    if (sizes[i] == Size{}) report.reason = Reason::bad_frame;
  }
  const std::size_t max = one_item_a_run_ ? 1 : spec_.batch_max;
  for (std::size_t first = 0, count = 0; first < pieces.count && report.reason == Reason::none; first += count) {
    for (count = 1; count < max && first + count < pieces.count && sizes[first + count] == sizes[first];) ++count;
    inputs().set_size(sizes[first]);
    const bool good = run_together(std::span(items).first(pieces.count), reports, regions,
                                   Chosen(places).subspan(first, count), nullptr, nullptr);
    for (std::size_t i = first; i < first + count; ++i)
      if (reports[i].reason != Reason::none) report.reason = reports[i].reason;
    for (std::size_t i = first; i < first + count; ++i) report.not_finite = report.not_finite || reports[i].not_finite;
    if (!good) return false;
  }
  return true;
}

}  // namespace leat::exec
