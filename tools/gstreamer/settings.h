// The properties that both elements have. Values are set and read under the element's object lock.
#pragma once

#include <gst/gst.h>

#include "tools/gstreamer/session.h"

namespace leat::gstreamer {

enum class OnMiss : gint { pass, drop, repeat };

struct Settings {
  SessionOptions stream;
  guint interval = 1;
  gdouble threshold = 0.5;
  OnMiss on_miss = OnMiss::pass;
  bool answers = false;
};

enum Property : guint {
  kApplication = 1,
  kSocket,
  kSloMs,
  kMaxAgeMs,
  kPriority,
  kOverload,
  kDepth,
  kInterval,
  kThreshold,
  kStats,
  kOnMiss,
  kAnswers
};

// All properties, or those of an element from which no picture goes on.
void install_properties(GObjectClass* object, bool pictures_go_on);
// FALSE: no setting of that number.
gboolean set_setting(Settings& settings, guint id, const GValue* value);
gboolean get_setting(const Settings& settings, guint id, GValue* value);

}  // namespace leat::gstreamer
