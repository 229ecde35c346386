// Which pictures the streams had in a record: what they submitted and, of streams that wait for grants, what they had
// at hand and was not wanted.
//
// Of the latter the record has those that a stream had where the core asked it. Between two that are known are as many
// more as its pictures mostly come apart, where it took turns: while every picture of a stream is wanted, what it does
// not submit does not exist. A picture that was not submitted shows what the nearest submitted one of its stream does,
// and takes as long from the moment at which it is wanted to its submission.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/record/history.h"

namespace leat::sim {

struct RecordedPicture {
  core::TimeNs at_ns = 0;  // of the record: when it was at hand; of a stream that does not wait, when it was submitted
  core::TimeNs capture_ns = 0;
  core::TimeNs write_ns = 0;  // from then, or from when it was wanted, to its submission; 0: the stream does not wait
  std::uint32_t frame = 0;    // index into the record's frames: itself, or the one that it is like
  bool submitted = false;     // it is that frame
};

// In the order of at_ns. A stream that submitted nothing has none.
[[nodiscard]] std::vector<RecordedPicture> recorded_pictures(const record::History& history);

}  // namespace leat::sim
