// The answers of one stream as NDJSON, in the order of its frames, with identities where they are wanted.
// docs/reference/answers.md says what a line has. Thread rule: one thread for each stream; the writer is shared.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/client.hpp"
#include "tools/base/json/json.h"
#include "tools/leat/answers/in_order.h"
#include "tools/leat/answers/line_writer.h"

namespace leat::tools {

inline constexpr int kAnswerVersion = 1;

struct StreamAnswersOptions {
  std::string stream, application;    // as they stand in each line
  bool tracks = false;                // identities for detections
  float min_score = 0;                // detections that score less are left out, and
  std::vector<std::int32_t> classes;  // those of other classes; empty: none are
  // Told of each answer's detections and identities, in order; empty: nobody.
  std::function<void(std::uint64_t picture, std::span<const leat_detection>, std::span<const std::uint64_t>)>
      identified;
  std::size_t max_values = 4096;  // of tensors, maps and embeddings that are listed
};

class StreamAnswers {
 public:
  // `to` outlives it. Errors: no memory.
  static Result<StreamAnswers> make(StreamAnswersOptions options, LineWriter& to);
  // `number`: the how manyth submission of the stream it answers, from 0; `picture`: of which picture of the source.
  void add(std::uint64_t number, std::uint64_t picture, const leat_answer& answer);
  // No more answers come of submissions before the `from`th: writes those that waited for one before them.
  void finish(std::uint64_t from);
  [[nodiscard]] const std::vector<std::int32_t>& classes() const { return options_.classes; }

 private:
  struct Waiting {
    Json line;
    std::uint64_t picture;
    std::int64_t capture_ns;
    std::optional<std::vector<leat_detection>> detections;  // none: it says nothing about what is there
  };
  StreamAnswers(StreamAnswersOptions options, LineWriter& to) : options_(std::move(options)), to_(&to) {}
  [[nodiscard]] bool wanted(const leat_detection& d) const;
  [[nodiscard]] bool leaves_out() const { return options_.min_score > 0 || !options_.classes.empty(); }
  void identify(Waiting& answer);
  void leave_out(Waiting& answer) const;
  void write(Waiting answer);

  StreamAnswersOptions options_;
  LineWriter* to_;
  std::optional<TrackIds> tracks_;
  InOrder<Waiting> in_order_;
};

// A class of a stream's application by its name or number; none: there is none.
[[nodiscard]] std::optional<std::int32_t> class_id_of(const leat_stream* stream, const std::string& name);

// Where lines are missing.
[[nodiscard]] std::string lost_line(std::uint64_t lines);

}  // namespace leat::tools
