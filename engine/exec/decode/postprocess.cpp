#include "engine/exec/decode/postprocess.h"

#include <algorithm>

#include "engine/exec/decode/boxes/boxes.h"
#include "engine/exec/decode/checksum.h"
#include "engine/exec/decode/classes/classes.h"
#include "engine/exec/decode/classes/heads.h"
#include "engine/exec/decode/embedding.h"
#include "engine/exec/decode/map.h"
#include "engine/exec/decode/points.h"
#include "engine/exec/decode/segments.h"
#include "engine/exec/decode/text/lines.h"
#include "engine/exec/decode/text/text.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxOutputs = 16;  // of a model

using Opener = decltype(PostprocessSpec::open);

// Takes a decoder's words, and opens it with what they say.
template <class P>
Opener take_words(SpecLine& words) {
  return [spec = P::parse(words)](const PostSetting& setting) -> OpenedPost {
    auto opened = P::open(spec, setting);
    if (!opened) return Error{opened.error()};
    return std::unique_ptr<Post>(std::move(*opened));
  };
}

struct Decoder {
  std::string_view word, usage;
  Opener (*parse)(SpecLine&);
  bool one_output = false;  // reads one output alone, which from= may name
};
constexpr Decoder kDecoders[] = {
    {"boxes", "boxes [layout= stride= score= iou=]", take_words<BoxesPost>, true},
    {"classes", "classes [top= act=]", take_words<ClassesPost>},
    {"heads", "heads", take_words<HeadsPost>, true},
    {"points", "points", take_words<PointsPost>, true},
    {"map", "map", take_words<MapPost>, true},
    {"lines", "lines", take_words<LinesPost>, true},
    {"segments", "segments", take_words<SegmentsPost>, true},
    {"text", "text", take_words<TextPost>, true},
    {"embedding", "embedding", take_words<EmbeddingPost>, true},
    {"tensors", "tensors [names= max=]", take_words<TensorsPost>},
    {"checksum", "checksum", take_words<ChecksumPost>},  // also where no decoder is named
};

std::string usage() {
  std::string out;
  for (const Decoder& d : kDecoders) out += (out.empty() ? "" : ", ") + std::string(d.usage);
  return out;
}

}  // namespace

Result<PostprocessSpec> parse_postprocess(std::string_view line) {
  PostprocessSpec spec;
  SpecLine words("postprocess", line);
  const auto named = std::ranges::find_if(kDecoders, [&](const Decoder& d) { return words.word(d.word); });
  if (named != std::end(kDecoders) && named->word == "boxes") words.renamed("overlap", "iou");
  if (named != std::end(kDecoders) && named->word == "tensors") words.renamed("most", "max");
  spec.outdated = words.outdated();
  const Decoder& decoder = named == std::end(kDecoders) ? *std::prev(std::end(kDecoders)) : *named;
  spec.open = decoder.parse(words);
  if (decoder.one_output) spec.from = words.text("from").value_or("");
  if (const auto status = words.finish(usage()); !status) return Error{status.error()};
  return spec;
}

Result<Postprocessor> Postprocessor::open(const PostprocessSpec& spec, std::span<const leat_tensor> outputs,
                                          std::span<const std::string> labels, std::uint32_t first_head,
                                          std::uint32_t input_width, std::uint32_t input_height,
                                          std::string_view model) {
  Postprocessor out;
  if (outputs.empty()) return Error{"postprocess: the model has no output"};
  std::vector<ItemTensor> items;
  for (const leat_tensor& t : outputs) items.push_back(item_of(t, -1));
  if (!spec.from.empty()) {
    const auto at = std::find_if(items.begin(), items.end(), [&](const ItemTensor& t) { return t.name == spec.from; });
    if (at == items.end() || items.size() > kMaxOutputs) {
      std::string all;
      for (const ItemTensor& t : items) all += (all.empty() ? "" : ", ") + std::string(t.name);
      return Error{"postprocess: there is no output '" + spec.from + "' for from=; the model has " + all};
    }
    out.first_ = static_cast<std::size_t>(at - items.begin());
    std::swap(items[0], *at);
  }
  auto opened = spec.open({items, input_width, input_height, labels, model, first_head});
  if (!opened) return Error{opened.error()};
  out.post_ = std::move(*opened);
  out.tensors_ = dynamic_cast<TensorsPost*>(out.post_.get());
  return out;
}

Answered Postprocessor::run(std::span<const leat_tensor> outputs, std::uint32_t row, const Placement& placement,
                            const FrameView& frame, std::int32_t detection, leat_result* result, leat_part* parts,
                            const Quad* corners, const Piece& piece) noexcept {
  std::array<ItemTensor, kMaxOutputs> items;
  const std::size_t count = std::min(outputs.size(), items.size());
  for (std::size_t i = 0; i < count; ++i) items[i] = item_of(outputs[i], static_cast<std::int32_t>(row));
  if (first_ < count) std::swap(items[0], items[first_]);
  if (detection < 0) {
    result->version = LEAT_RESULT_VERSION;
    result->frame_width = frame.width, result->frame_height = frame.height;
    if (result->kind == LEAT_RESULT_NONE) result->kind = LEAT_RESULT_PARTS;
  }
  return post_->run({items.data(), count}, {placement, frame, detection, result, corners, parts, piece});
}

}  // namespace leat::exec
