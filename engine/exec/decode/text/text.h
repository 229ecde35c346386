// text ctc|slots keys=FILE [none=_] [blank=first|last] [axis=tc|ct]: the line of text that the picture, or the
// detection that was cut out, shows. FILE: a path, or relative to the model's folder; keys=model: the lines of
// `character` in the model's metadata (RapidOCR).
//   ctc    [T, V] scores ([T, 1, V] of one line a run): the best of each step, repeats and the first class (blank)
//   dropped (Graves, Fernandez, Gomez and
//          Schmidhuber, "Connectionist Temporal Classification", 2006); classes are blank, the file's lines, and a
//          space where V is two more than the lines. Score: the mean over the steps that are kept. blank=last: the
//          lines, a space where there is room for one, and blank (docTR, LPRNet); axis=ct: [V, T] (LPRNet)
//          A wide picture may come in pieces that overlap (sizes.h, wide=split); their steps become those of one line
//          (ctc_steps.h)
//   slots  [S, V] scores, or [S * V] flat: the best of each slot; the character `none` is left out
#pragma once

#include "engine/exec/decode/post.h"
#include "engine/exec/decode/text/ctc_steps.h"

namespace leat::exec {

struct TextSpec {
  bool slots = false;
  bool blank_last = false, classes_first = false;
  std::string keys, none = "_";
};

class TextPost final : public Post {
 public:
  static TextSpec parse(SpecLine& words);
  static Result<std::unique_ptr<TextPost>> open(const TextSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  [[nodiscard]] bool joins() const override { return !spec_.slots; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  static Result<std::vector<std::string>> keys_of(const std::string& name, std::string_view model);
  void read(const ItemTensor& t) noexcept;
  void write(const PostTarget& target, const PartPlace& place) const noexcept;
  TextSpec spec_;
  std::vector<std::string> classes_;
  std::vector<CtcStep> piece_, line_;  // room for what one piece and what all can have
  std::size_t piece_steps_ = 0, line_steps_ = 0;
  bool finite_ = true;          // the best score of every step so far
  float columns_per_step_ = 1;  // of the first piece
  PartSpec part_;
};

}  // namespace leat::exec
