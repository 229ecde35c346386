#include "engine/exec/decode/boxes/layouts.h"

#include <algorithm>

namespace leat::exec {

// Each is in the file of its name.
OpenedLayout open_maps(const LayoutSetting&), open_rows(const LayoutSetting&), open_yolo8(const LayoutSetting&),
    open_yolo5(const LayoutSetting&), open_yolox(const LayoutSetting&), open_columns(const LayoutSetting&),
    open_split(const LayoutSetting&), open_query(const LayoutSetting&), open_levels(const LayoutSetting&),
    open_dfl(const LayoutSetting&), open_priors(const LayoutSetting&);
void maps_words(SpecLine&, BoxesSpec&), rows_words(SpecLine&, BoxesSpec&), columns_words(SpecLine&, BoxesSpec&),
    split_words(SpecLine&, BoxesSpec&), query_words(SpecLine&, BoxesSpec&), dfl_words(SpecLine&, BoxesSpec&),
    priors_words(SpecLine&, BoxesSpec&);

namespace {

constexpr LayoutRow kLayouts[] = {
    {"maps", maps_words, open_maps},           {"rows", rows_words, open_rows},
    {"yolo8", shared_words, open_yolo8, true}, {"yolo5", shared_words, open_yolo5, true},
    {"yolox", shared_words, open_yolox},       {"columns", columns_words, open_columns, true},
    {"split", split_words, open_split},        {"query", query_words, open_query},
    {"levels", shared_words, open_levels},     {"dfl", dfl_words, open_dfl},
    {"priors", priors_words, open_priors}};

}  // namespace

const LayoutRow* find_layout(std::string_view name) {
  const auto found = std::ranges::find(kLayouts, name, &LayoutRow::name);
  return found == std::end(kLayouts) ? nullptr : found;
}

std::string layout_names(bool with_masks) {
  std::string out;
  for (const LayoutRow& row : kLayouts)
    if (row.masks || !with_masks) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

}  // namespace leat::exec
