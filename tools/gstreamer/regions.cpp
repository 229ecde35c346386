#include "tools/gstreamer/regions.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "leat/result_parts.h"

namespace leat::gstreamer {
namespace {

Region region_over(const GstVideoInfo& video, const char* kind, float x0, float y0, float x1, float y1) {
  const auto width = static_cast<float>(GST_VIDEO_INFO_WIDTH(&video));
  const auto height = static_cast<float>(GST_VIDEO_INFO_HEIGHT(&video));
  const auto within = [](float at, float from, float to) {
    return static_cast<double>(at > from ? std::min(at, to) : from);  // not a number: from
  };
  const double left = within(x0, 0, width), top = within(y0, 0, height);
  return {kind, left, top, std::max(left, within(x1, 0, width)), std::max(top, within(y1, 0, height)), {}};
}

void add_detections(const Session& session, const leat_result& result, double threshold, std::vector<Region>& out) {
  for (const leat_detection& d :
       std::span(result.detections, std::min<std::size_t>(result.detection_count, LEAT_MAX_DETECTIONS))) {
    if (!(static_cast<double>(d.score) >= threshold)) continue;
    Region region = region_over(session.video(), "detection", d.x0, d.y0, d.x1, d.y1);
    region.facts.push_back({"detection", session.class_name(0, d.class_id), d.class_id, static_cast<double>(d.score)});
    for (const leat_label& l : std::span(d.labels, std::min<std::size_t>(d.label_count, LEAT_MAX_LABELS)))
      region.facts.push_back(
          {"classification", session.class_name(1 + l.head, l.class_id), l.class_id, static_cast<double>(l.score)});
    out.push_back(std::move(region));
  }
}

void add_classes(const Session& session, const leat_result& result, double threshold, std::vector<Region>& out) {
  const GstVideoInfo& video = session.video();
  Region whole = region_over(video, "classification", 0, 0, static_cast<float>(GST_VIDEO_INFO_WIDTH(&video)),
                             static_cast<float>(GST_VIDEO_INFO_HEIGHT(&video)));
  for (const leat_class& c : std::span(result.classes, std::min<std::size_t>(result.class_count, LEAT_MAX_CLASSES)))
    if (static_cast<double>(c.score) >= threshold)
      whole.facts.push_back(
          {"classification", session.class_name(0, c.class_id), c.class_id, static_cast<double>(c.score)});
  if (!whole.facts.empty()) out.push_back(std::move(whole));
}

void add_texts(const Session& session, const leat_part_view& part, double threshold, std::vector<Region>& out) {
  const std::string_view bytes(static_cast<const char*>(part.data), part.bytes);
  for (const leat_text& t : std::span(static_cast<const leat_text*>(part.data), part.dims[0])) {
    if (!(static_cast<double>(t.score) >= threshold) || t.offset > bytes.size() || t.length > bytes.size() - t.offset)
      continue;
    const auto [x0, x1] = std::minmax({t.quad[0], t.quad[2], t.quad[4], t.quad[6]});
    const auto [y0, y1] = std::minmax({t.quad[1], t.quad[3], t.quad[5], t.quad[7]});
    Region region = region_over(session.video(), "text", x0, y0, x1, y1);
    gchar* const valid = g_utf8_make_valid(bytes.data() + t.offset, static_cast<gssize>(t.length));
    region.facts.push_back({"text", valid, 0, static_cast<double>(t.score)});
    g_free(valid);
    out.push_back(std::move(region));
  }
}

GstStructure* structure_of(const Region& region, const Fact& fact, double width, double height) {
  return gst_structure_new(fact.kind, "label_id", G_TYPE_INT, fact.label_id, "label", G_TYPE_STRING, fact.label.c_str(),
                           "confidence", G_TYPE_DOUBLE, fact.confidence, "x_min", G_TYPE_DOUBLE, region.x0 / width,
                           "y_min", G_TYPE_DOUBLE, region.y0 / height, "x_max", G_TYPE_DOUBLE, region.x1 / width,
                           "y_max", G_TYPE_DOUBLE, region.y1 / height, nullptr);
}

}  // namespace

std::vector<Region> regions_of(const Session& session, const leat_answer& answer, double threshold) {
  std::vector<Region> regions;
  const leat_result& result = *answer.result;
  if (result.kind == LEAT_RESULT_DETECTIONS) add_detections(session, result, threshold, regions);
  if (result.kind == LEAT_RESULT_CLASSES) add_classes(session, result, threshold, regions);
  leat_part_view part;
  for (std::uint32_t i = 0; i < LEAT_MAX_PARTS; ++i)
    if (leat_part_at(&result, answer.result_bytes, i, &part) != 0 && part.kind == LEAT_PART_text && part.rank > 0)
      add_texts(session, part, threshold, regions);
  return regions;
}

// A text is no name of a kind of thing: names are kept for ever.
void add_regions(const std::vector<Region>& regions, const GstVideoInfo& video, GstBuffer* buffer) {
  for (const Region& r : regions) {
    const std::string_view kind = r.kind;
    GstVideoRegionOfInterestMeta* const meta = gst_buffer_add_video_region_of_interest_meta(
        buffer, kind == "text" ? "text" : r.facts.front().label.c_str(), static_cast<guint>(r.x0),
        static_cast<guint>(r.y0), static_cast<guint>(r.x1 - r.x0), static_cast<guint>(r.y1 - r.y0));
    for (const Fact& fact : r.facts)
      gst_video_region_of_interest_meta_add_param(
          meta, structure_of(r, fact, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)));
  }
}

void set_regions(GstStructure* message, const std::vector<Region>& regions) {
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_ARRAY);
  for (const Region& r : regions)
    for (const Fact& fact : r.facts) {
      GValue one = G_VALUE_INIT;
      g_value_init(&one, GST_TYPE_STRUCTURE);
      g_value_take_boxed(&one, structure_of(r, fact, 1, 1));
      gst_value_array_append_and_take_value(&list, &one);
    }
  gst_structure_take_value(message, "regions", &list);
}

}  // namespace leat::gstreamer
