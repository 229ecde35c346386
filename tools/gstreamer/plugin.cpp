#include "tools/gstreamer/elements.h"

#define PACKAGE "leat"

namespace {
gboolean start(GstPlugin* plugin) {
  return gst_element_register(plugin, "leatdetect", GST_RANK_NONE, leat::gstreamer::detect_element_type()) &&
         gst_element_register(plugin, "leatsink", GST_RANK_NONE, leat::gstreamer::sink_element_type());
}
}  // namespace

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, leat, "Detections of a Leat daemon", start, LEAT_VERSION,
                  "Apache 2.0", "leat", "https://example.invalid/leat")
