// What an answer says about a picture, as GStreamer's users read it: regions of interest with a structure for each
// thing that is known of them. Pure; copies what it needs of the answer.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "tools/gstreamer/session.h"

namespace leat::gstreamer {

// "detection" (a box's class), "classification" (of a box, or of the whole picture) or "text".
struct Fact {
  const char* kind;
  std::string label;
  std::int32_t label_id;
  double confidence;
};
struct Region {
  const char* kind;         // of its box: "detection", "classification" or "text"
  double x0, y0, x1, y1;    // pixels, within the picture
  std::vector<Fact> facts;  // the first is what the region is called after
};

std::vector<Region> regions_of(const Session& session, const leat_answer& answer, double threshold);
void add_regions(const std::vector<Region>& regions, const GstVideoInfo& video, GstBuffer* buffer);
// GST_TYPE_ARRAY of structures, for a message on the bus.
void set_regions(GstStructure* message, const std::vector<Region>& regions);

}  // namespace leat::gstreamer
