// The GStreamer elements. leatdetect: asks leatd what is in each picture, and hands the picture on with the answer.
// leatsink: the same, and the pictures end there; the answers are on the bus.
#pragma once

#include <gst/gst.h>

namespace leat::gstreamer {

GType detect_element_type();
GType sink_element_type();

}  // namespace leat::gstreamer
