// What `leat feed` was asked for, from its options: what holds for all streams, and which sources there are.
// Thread rule: functions of their arguments. Errors: one line.
#pragma once

#include <string>
#include <vector>

#include "tools/base/cli/command.h"
#include "tools/leat/feed/cameras/camera_config.h"
#include "tools/leat/feed/source/decoder_place.h"

namespace leat::tools {

// What all streams have in common.
Result<FeederOptions> read_options(const cli::Arguments& args);
// The sources that the command line names, a stream each or as many as it asks for. None where a file names cameras.
Result<std::vector<FeederOptions>> plan_streams(const cli::Arguments& args, const FeederOptions& all,
                                                const std::vector<Truth>& truths, Judge* judge);
// Where they are decoded. Asks leatd for its partitions' cores.
[[nodiscard]] DecodersRun decoders_of(const cli::Arguments& args);

}  // namespace leat::tools
