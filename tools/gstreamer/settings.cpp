#include "tools/gstreamer/settings.h"

namespace leat::gstreamer {
namespace {

GType on_miss_type() {
  static const GEnumValue kValues[] = {
      {static_cast<gint>(OnMiss::pass), "The picture goes on without regions", "pass"},
      {static_cast<gint>(OnMiss::drop), "The picture goes no further", "drop"},
      {static_cast<gint>(OnMiss::repeat), "The picture gets the regions of the latest answer", "repeat"},
      {0, nullptr, nullptr}};
  static const GType kType = g_enum_register_static("LeatOnMiss", kValues);
  return kType;
}
GType overload_type() {
  static const GEnumValue kValues[] = {
      {static_cast<gint>(Overload::wait), "The element before waits until there is room", "wait"},
      {static_cast<gint>(Overload::fifo), "A picture that finds `depth` before it is missed", "fifo"},
      {static_cast<gint>(Overload::latest), "The oldest that waits gives way to the newest", "latest"},
      {0, nullptr, nullptr}};
  static const GType kType = g_enum_register_static("LeatOverload", kValues);
  return kType;
}
GType priority_type() {
  static const GEnumValue kValues[] = {{LEAT_PRIORITY_BACKGROUND, "Behind all others", "background"},
                                       {LEAT_PRIORITY_NORMAL, "As most", "normal"},
                                       {LEAT_PRIORITY_HIGH, "Before others", "high"},
                                       {LEAT_PRIORITY_PROTECTED, "Never given up for others", "protected"},
                                       {0, nullptr, nullptr}};
  static const GType kType = g_enum_register_static("LeatPriority", kValues);
  return kType;
}

constexpr auto kFlags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);

void install_stream_properties(GObjectClass* object) {
  const auto add = [&](guint id, GParamSpec* spec) { g_object_class_install_property(object, id, spec); };
  add(kApplication,
      g_param_spec_string("application", "Application", "leatd's application that looks at the pictures", "", kFlags));
  add(kSocket,
      g_param_spec_string("socket", "Socket", "leatd's socket; empty: $LEAT_SOCKET, else the usual place", "", kFlags));
  add(kSloMs,
      g_param_spec_uint("slo-ms", "Objective", "From a picture's time to its answer, in ms; 0: the application's", 0,
                        3'600'000, 0, kFlags));
  add(kMaxAgeMs, g_param_spec_uint("max-age-ms", "Largest age",
                                   "Answers to pictures older than this are worthless, in ms; 0: none is", 0, 3'600'000,
                                   0, kFlags));
  add(kPriority, g_param_spec_enum("priority", "Priority", "Of the stream, within what leatd allows this user",
                                   priority_type(), LEAT_PRIORITY_NORMAL, kFlags));
  add(kOverload, g_param_spec_enum("overload", "Overload", "What becomes of pictures that come faster than answers",
                                   overload_type(), static_cast<gint>(Overload::wait), kFlags));
  add(kDepth, g_param_spec_uint("depth", "Depth", "Pictures that are asked about at once", 1, 32, 4, kFlags));
}

}  // namespace

void install_properties(GObjectClass* object, bool pictures_go_on) {
  const auto add = [&](guint id, GParamSpec* spec) { g_object_class_install_property(object, id, spec); };
  install_stream_properties(object);
  add(kInterval, g_param_spec_uint("interval", "Interval", "Asks about one picture of so many", 1, 10'000, 1, kFlags));
  add(kThreshold, g_param_spec_double("threshold", "Threshold", "What scores less is left out", 0, 1, 0.5, kFlags));
  add(kStats,
      g_param_spec_boxed("stats", "Statistics",
                         "What was counted: submitted, completed, late, missed, in-flight, bytes-copied",
                         GST_TYPE_STRUCTURE, static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  if (!pictures_go_on) return;
  add(kOnMiss, g_param_spec_enum("on-miss", "On a miss", "What becomes of a picture without an answer", on_miss_type(),
                                 static_cast<gint>(OnMiss::pass), kFlags));
  add(kAnswers,
      g_param_spec_boolean("answers", "Answers", "Tells every answer on the bus, not misses alone", FALSE, kFlags));
}

gboolean set_setting(Settings& s, guint id, const GValue* value) {
  const auto text = [&] { return g_value_get_string(value) != nullptr ? g_value_get_string(value) : ""; };
  const auto ns = [&] { return std::int64_t{g_value_get_uint(value)} * 1'000'000; };
  switch (id) {
    case kApplication:
      s.stream.application = text();
      return TRUE;
    case kSocket:
      s.stream.socket = text();
      return TRUE;
    case kSloMs:
      s.stream.slo_ns = ns();
      return TRUE;
    case kMaxAgeMs:
      s.stream.max_age_ns = ns();
      return TRUE;
    case kPriority:
      s.stream.priority = static_cast<std::uint32_t>(g_value_get_enum(value));
      return TRUE;
    case kOverload:
      s.stream.overload = static_cast<Overload>(g_value_get_enum(value));
      return TRUE;
    case kDepth:
      s.stream.depth = g_value_get_uint(value);
      return TRUE;
    case kInterval:
      s.interval = g_value_get_uint(value);
      return TRUE;
    case kThreshold:
      s.threshold = g_value_get_double(value);
      return TRUE;
    case kOnMiss:
      s.on_miss = static_cast<OnMiss>(g_value_get_enum(value));
      return TRUE;
    case kAnswers:
      s.answers = g_value_get_boolean(value) != FALSE;
      return TRUE;
    default:
      return FALSE;
  }
}

gboolean get_setting(const Settings& s, guint id, GValue* value) {
  switch (id) {
    case kApplication:
      g_value_set_string(value, s.stream.application.c_str());
      return TRUE;
    case kSocket:
      g_value_set_string(value, s.stream.socket.c_str());
      return TRUE;
    case kSloMs:
      g_value_set_uint(value, static_cast<guint>(s.stream.slo_ns / 1'000'000));
      return TRUE;
    case kMaxAgeMs:
      g_value_set_uint(value, static_cast<guint>(s.stream.max_age_ns / 1'000'000));
      return TRUE;
    case kPriority:
      g_value_set_enum(value, static_cast<gint>(s.stream.priority));
      return TRUE;
    case kOverload:
      g_value_set_enum(value, static_cast<gint>(s.stream.overload));
      return TRUE;
    case kDepth:
      g_value_set_uint(value, s.stream.depth);
      return TRUE;
    case kInterval:
      g_value_set_uint(value, s.interval);
      return TRUE;
    case kThreshold:
      g_value_set_double(value, s.threshold);
      return TRUE;
    case kOnMiss:
      g_value_set_enum(value, static_cast<gint>(s.on_miss));
      return TRUE;
    case kAnswers:
      g_value_set_boolean(value, s.answers);
      return TRUE;
    default:
      return FALSE;
  }
}

}  // namespace leat::gstreamer
