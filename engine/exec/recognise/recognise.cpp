#include "engine/exec/recognise/recognise.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/exec/recognise/companion_files.h"
#include "engine/exec/recognise/heuristics/heuristics.h"
#include "engine/exec/recognise/known.h"
#include "engine/exec/recognise/metadata.h"
#include "engine/exec/recognise/norm.h"
#include "tools/base/text/nearest.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxNameBytes = 64 * 1024;  // of one module, in what a client is told of a stream

std::string beside(const std::string& file) { return file + " beside it"; }

// Names of the metadata, else of a file that is surely about this model, else of one that has as many as there are
// classes.
Concluded labels_of(const FromMetadata& metadata, const CompanionFiles& files, std::int64_t classes) {
  Concluded out;
  if (!metadata.names.empty()) {
    out = {joined(metadata.names), metadata.seen};
  } else if (!files.names.empty() &&
             (classes >= 0 ? static_cast<std::int64_t>(files.names.size()) == classes : files.names_certain)) {
    out = {joined(files.names), beside(files.names_from)};
  }
  return out.words.size() <= kMaxNameBytes ? out : Concluded{};
}

std::string in_quotes(const std::string& words) { return "\"" + words + "\""; }

// Everything that is known of a model, and what follows from it.
class Judge {
 public:
  Judge(ModelFacts facts, const GivenWords& given)
      : f_(std::move(facts)), given_(given), metadata_(read_metadata(f_)), files_(read_companion_files(f_)) {
    heuristic_ = heuristic_of(f_, files_.architecture);
    const bool told = heuristic_.seen.starts_with("architecture");
    seen_ = told ? beside(files_.task_from) + " (" + heuristic_.seen + ")" : heuristic_.seen;
    files_.preprocess = beside_graph(files_.preprocess, f_.norm);
    heuristic_.pre = beside_graph(heuristic_.pre, f_.norm);
    heuristic_.likely = beside_graph(fitting(heuristic_.likely), f_.norm);
  }

  Status find_known(const std::string& as) {
    auto all = known_models();
    if (!all.ok()) return Error{all.error()};
    if (as.empty()) {
      known_ = matching(*all, f_);
      return Done{};
    }
    std::vector<std::string> names;
    for (KnownModel& k : *all) {
      names.push_back(k.name);
      if (k.name != as || !known_.empty()) continue;
      known_ = {std::move(k)}, known_[0].sure = true, chosen_ = true;
    }
    if (chosen_) return Done{};
    const std::string meant = text::nearest(as, names);
    return Error{"there is no known model '" + as + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?") +
                 " (leat try --list names them all)"};
  }

  Judgement judge() {
    out_.words.preprocess.words = given_.preprocess, out_.words.postprocess.words = given_.postprocess;
    if (given_.postprocess.empty()) conclude_postprocess();
    if (given_.preprocess.empty()) conclude_preprocess();
    conclude_labels();
    return std::move(out_);
  }

 private:
  // Likely words that the model's picture takes: of its channels, and of a usual size where it leaves its own open.
  [[nodiscard]] std::string fitting(std::string words) const {
    const ModelPort* const picture = f_.picture();
    if (picture == nullptr) return words;
    const bool gray = picture->dim(f_.nhwc() ? -1 : -3) == 1, open = f_.width() < 0 || f_.height() < 0;
    const bool bytes = picture->dtype == LEAT_U8;  // which hold pixels as they are, and no fractions
    if (words.empty() && !gray && !open && !bytes) return words;
    const bool classes = heuristic_.post.starts_with("classes") || f_.outputs[0].rank() == 2;
    if (words.empty()) words = classes || !open ? kImagenetWords : kLetterboxWords;
    if (const std::size_t at = words.find(" rgb "); gray && at != std::string::npos)
      words = words.substr(0, at) + " gray norm=unit";
    if (const std::size_t at = words.find("norm="); bytes && at != std::string::npos)
      words.replace(at, std::min(words.find(' ', at), words.size()) - at, "norm=raw");
    const auto says = [&](const char* key) { return words.find(key) != std::string::npos; };
    if (open && !says(" size=") && !says(" longest=") && !says(" edge=") && !says(" height="))
      words += classes ? " size=224x224" : " size=640x640";
    return words;
  }
  // Whether the very file is known.
  [[nodiscard]] bool exact() const { return !chosen_ && known_.size() == 1 && !known_[0].sha256.empty(); }
  [[nodiscard]] std::string known_seen() const {
    std::string names;
    for (const KnownModel& k : known_) names += (names.empty() ? "" : ", ") + k.name;
    if (exact()) return "its SHA-256 (" + names + ")";
    return (chosen_ ? "the known model " : "its structure (" + std::string(known_.size() > 1 ? "one of " : "")) +
           names + (chosen_ ? "" : ")");
  }
  // Whether all that it can be want the same.
  template <class F>
  [[nodiscard]] bool agreed(F words) const {
    return !known_.empty() &&
           std::all_of(known_.begin(), known_.end(), [&](const KnownModel& k) { return words(k) == words(known_[0]); });
  }
  // Everything that is open is asked for at once.
  void ask(const std::string& what) {
    out_.question += out_.question.empty() ? f_.path + ": " + what : "; and " + what;
  }
  void ask_which() {
    if (std::exchange(asked_which_, true)) return;
    picture_asked_ = true;
    out_.name = known_.size() == 1 ? known_[0].name : "NAME";
    std::string all;
    for (const KnownModel& k : known_)
      all += (all.empty() ? "" : "; ") + k.name + ", " + k.what + " (preprocess = " + in_quotes(preprocess_of(k, f_)) +
             ", postprocess = " + in_quotes(k.postprocess) + ")";
    ask("by its structure it may be " + all +
        (known_.size() == 1 ? "; files like it differ in what they want, so confirm these words by writing them"
                            : "; nothing in the file says which: write the words of one"));
  }

  [[nodiscard]] bool sure() const {
    return std::all_of(known_.begin(), known_.end(), [](const KnownModel& k) { return k.sure; }) || exact();
  }

  [[nodiscard]] std::string picture_too() {
    const bool open = given_.preprocess.empty() && metadata_.preprocess.empty() && files_.preprocess.empty() &&
                      heuristic_.pre.empty() && heuristic_.ask.find("preprocess = ") == std::string::npos;
    picture_asked_ = true;
    return open ? "; write preprocess too, as its authors prepare their pictures (preprocess = " +
                      in_quotes(likely_picture()) + ", for example)"
                : "";
  }

  void conclude_postprocess() {
    const auto answer = [](const KnownModel& k) { return k.postprocess; };
    Concluded& to = out_.words.postprocess;
    if (chosen_) {
      to = {known_[0].postprocess, known_seen()};
    } else if (!metadata_.refused.empty()) {
      out_.question = metadata_.refused;  // no other words would help
      asked_which_ = picture_asked_ = true;
    } else if (!metadata_.postprocess.empty()) {
      to = {metadata_.postprocess, metadata_.seen};
    } else if (!files_.postprocess.empty()) {
      to = {files_.postprocess, beside(files_.postprocess_from)};
    } else if (agreed(answer) && sure()) {
      to = {known_[0].postprocess, known_seen()};
    } else if (!known_.empty()) {
      to = {known_[0].postprocess, known_seen()};
      ask_which();
    } else if (!heuristic_.post.empty()) {
      to = {heuristic_.post, seen_};
    } else if (!heuristic_.ask.empty()) {
      ask(heuristic_.seen + ": " + heuristic_.ask + picture_too());
    } else {
      ask("nothing in it says what its outputs (" + f_.outputs_text() +
          ") mean; write postprocess = \"tensors\" to have them as they are, or boxes, points, classes, map, text or "
          "embedding" +
          picture_too());
    }
    find_keys(to);
  }

  // A known recogniser does not name the file of its characters: one beside it of as many lines as it has classes.
  void find_keys(Concluded& post) {
    constexpr std::string_view kOpen = "keys=FILE";
    const std::size_t at = post.words.find(kOpen);
    if (at == std::string::npos) return;
    const int axis = post.words.find("axis=ct") != std::string::npos ? 1 : -1;
    const std::int64_t classes = f_.outputs.empty() ? -1 : f_.outputs[0].dim(axis);
    const std::string file = classes > 2 ? lines_beside(f_, classes) : "";
    if (!file.empty()) {
      post.words.replace(at, kOpen.size(), "keys=" + file), post.from += " and " + beside(file);
      return;
    }
    ask(post.from + " says postprocess = " + in_quotes(post.words) + ", FILE being " +
        (classes > 2 ? std::to_string(classes - 2) : "its") +
        " characters, one a line, in the order of its classes; there is no such file beside it");
  }

  [[nodiscard]] static std::string kind_of(const std::string& words) { return words.substr(0, words.find(' ')); }
  // Detectors mostly want the whole picture in its proportions.
  [[nodiscard]] std::string likely_picture() const {
    if (!heuristic_.likely.empty() && !other_answer()) return heuristic_.likely;
    const bool boxes = kind_of(out_.words.postprocess.words) == "boxes";
    return beside_graph(boxes ? kLetterboxWords : kImagenetWords, f_.norm);
  }

  // Words for another kind of answer than the structure's: what the structure says of the picture is not certain then.
  [[nodiscard]] bool other_answer() const {
    const std::string given = kind_of(given_.postprocess);
    const std::string& meant = known_.empty() ? heuristic_.post : known_[0].postprocess;
    return !given.empty() && given != "tensors" && !meant.empty() && given != kind_of(meant);
  }

  void conclude_preprocess() {
    const auto picture = [&](const KnownModel& k) { return preprocess_of(k, f_); };
    Concluded& to = out_.words.preprocess;
    if (chosen_) {
      to = {preprocess_of(known_[0], f_), known_seen()};
    } else if (!metadata_.preprocess.empty()) {
      to = {metadata_.preprocess, metadata_.seen};
    } else if (!heuristic_.pre.empty() && !other_answer() && !exact()) {
      to = {heuristic_.pre, seen_};
    } else if (!files_.preprocess.empty()) {
      to = {files_.preprocess, beside(files_.preprocess_from)};
      if (!files_.size.empty())
        ask(beside(files_.preprocess_from) +
            " leaves the picture's size to its proportions; likely preprocess = " + in_quotes(to.words + files_.size));
      to.words += files_.size;
    } else if (agreed(picture) && sure() && !other_answer()) {
      to = {preprocess_of(known_[0], f_), known_seen()};
    } else if (!known_.empty() && !other_answer()) {
      to = {preprocess_of(known_[0], f_), known_seen()};
      ask_which();
    } else {
      to = {likely_picture(), seen_};
      ask_for_picture();
    }
  }

  // How its pictures are prepared is in no file.
  void ask_for_picture() {
    if (picture_asked_) return;
    const Concluded& post = out_.words.postprocess;
    const std::string said =
        post.from.empty() ? "postprocess is given" : post.from + " says postprocess = " + in_quotes(post.words);
    ask(said + ", but no file says its colours and their range; likely preprocess = " +
        in_quotes(out_.words.preprocess.words) + (heuristic_.doubt.empty() ? "" : " (" + heuristic_.doubt + ")"));
  }

  // Names belong to answers that have classes.
  void conclude_labels() {
    const std::string& post = out_.words.postprocess.words;
    const bool classes = post.starts_with("boxes") || post.starts_with("classes") || post.starts_with("map argmax");
    if (given_.labels || !classes) return;
    const bool known = given_.postprocess.empty() && agreed([](const KnownModel& k) { return k.labels; });
    out_.words.labels =
        labels_of(metadata_, files_, given_.postprocess.empty() && known_.empty() ? heuristic_.classes : -1);
    if (out_.words.labels.words.empty() && known && !known_[0].labels.empty())
      out_.words.labels = {known_[0].labels, known_seen()};
  }

  ModelFacts f_;
  const GivenWords& given_;
  FromMetadata metadata_;
  CompanionFiles files_;
  Heuristic heuristic_;
  std::string seen_;
  std::vector<KnownModel> known_;
  bool chosen_ = false;  // by name
  bool asked_which_ = false, picture_asked_ = false;
  Judgement out_;
};

}  // namespace

namespace {

Result<Judgement> judged(ModelFacts facts, const GivenWords& given) {
  Judge judge(std::move(facts), given);
  if (auto status = judge.find_known(given.as); !status) return Error{status.error()};
  return judge.judge();
}

}  // namespace

Result<Judgement> judge(const std::string& model_path, const GivenWords& given) {
  auto facts = read_facts(model_path);
  if (!facts.ok()) return Error{facts.error()};
  return judged(std::move(*facts), given);
}

Result<Recognised> recognise(const std::string& model_path, const GivenWords& given) {
  auto facts = read_facts(model_path);
  if (!facts.ok()) {
    if (given.postprocess.empty()) return Error{facts.error()};
    return Recognised{.preprocess = {given.preprocess, ""}, .postprocess = {given.postprocess, ""}, .labels = {}};
  }
  auto found = judged(std::move(*facts), given);
  if (!found.ok()) return Error{found.error()};
  if (!found->question.empty()) return Error{found->question};
  return std::move(found->words);
}

}  // namespace leat::exec
