// leatsink: leatdetect before a sink that throws pictures away. The answers are told on the bus.
#include "tools/gstreamer/elements.h"
#include "tools/gstreamer/settings.h"

namespace leat::gstreamer {
namespace {

struct LeatSink {
  GstBin parent;
  GstElement* detect;
};
struct LeatSinkClass {
  GstBinClass parent;
};

G_DEFINE_TYPE(LeatSink, leat_sink, GST_TYPE_BIN)

GstElement* detect_of(gpointer object) { return reinterpret_cast<LeatSink*>(object)->detect; }

void set_property(GObject* object, guint, const GValue* value, GParamSpec* spec) {
  g_object_set_property(G_OBJECT(detect_of(object)), spec->name, value);
}
void get_property(GObject* object, guint, GValue* value, GParamSpec* spec) {
  g_object_get_property(G_OBJECT(detect_of(object)), spec->name, value);
}

void leat_sink_init(LeatSink* self) {
  self->detect = GST_ELEMENT(g_object_new(detect_element_type(), "name", "detect", "answers", TRUE, nullptr));
  GstElement* const end = gst_element_factory_make("fakesink", "end");
  g_object_set(end, "sync", FALSE, "enable-last-sample", FALSE, nullptr);
  gst_bin_add_many(GST_BIN(self), self->detect, end, nullptr);
  gst_element_link(self->detect, end);
  GstPad* const pad = gst_element_get_static_pad(self->detect, "sink");
  gst_element_add_pad(GST_ELEMENT_CAST(self), gst_ghost_pad_new("sink", pad));
  gst_object_unref(pad);
  GST_OBJECT_FLAG_SET(self, GST_ELEMENT_FLAG_SINK);
}

void leat_sink_class_init(LeatSinkClass* klass) {
  auto* const object = G_OBJECT_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  install_properties(object, false);
  auto* const element = GST_ELEMENT_CLASS(klass);
  static GstStaticPadTemplate pad_template = GST_STATIC_PAD_TEMPLATE(
      "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE("{ RGB, BGR, NV12, I420, GRAY8 }")));
  gst_element_class_add_static_pad_template(element, &pad_template);
  gst_element_class_set_static_metadata(element, "Leat detections' end", "Sink/Analyzer/Video",
                                        "Tells on the bus what an application of leatd finds", "Leat maintainers");
}

}  // namespace

GType sink_element_type() { return leat_sink_get_type(); }

}  // namespace leat::gstreamer
