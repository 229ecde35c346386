#include "engine/exec/test/test_families.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec {
namespace {

using namespace families;

std::vector<double> softmax(const std::vector<float>& values) {
  double sum = 0;
  std::vector<double> out;
  for (const float v : values) sum += std::exp(double(v));
  for (const float v : values) out.push_back(std::exp(double(v)) / sum);
  return out;
}
// Class and score of the best five, best first.
std::vector<double> best_five(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i)
    out.insert(out.end(), {double(order[i]), scores[order[i]]});
  return out;
}
std::vector<float> waves(std::size_t count, double step = .7) {
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = f(2 * std::sin(step * double(i) + .3));
  return v;
}
std::vector<double> as_doubles(const std::vector<float>& v) { return {v.begin(), v.end()}; }

void add_classifiers(std::vector<FamilyModel>& out) {
  {
    const std::vector<float> values = {.4F, 2, -1};
    Builder b("images", G::f32, square());
    b.put("output0", {1, 3}, values, true);
    ultralytics(b.g, "classify");
    out.push_back({.name = "YOLO cls",
                   .graph = std::move(b.g),
                   .preprocess = "cover=1 resize=antialias rgb norm=unit",
                   .postprocess = "classes act=none",
                   .labels = kLabels,
                   .answer = best_five(softmax(values))});
  }
  const std::vector<float> thousand = waves(1000);
  {
    Builder b("input", G::f32, square());
    b.put("output", {1, 1000}, thousand);
    out.push_back({.name = "torchvision classifiers",
                   .graph = std::move(b.g),
                   .preprocess = "cover=0.875 resize=antialias rgb norm=imagenet",
                   .postprocess = "classes",
                   .asked = true,
                   .answer = best_five(softmax(thousand))});
  }
  const std::vector<float> three = {1, -.5F, 2.5F};
  for (const bool told : {false, true}) {
    Builder b("input0", G::f32, square("batch"));
    b.put("output0", {"batch", 3}, three);
    out.push_back(
        {.name = told ? "timm (config.json)" : "timm",
         .graph = std::move(b.g),
         .preprocess = told ? "cover=0.95 resize=cubic rgb norm=half" : "cover=0.875 resize=cubic rgb norm=imagenet",
         .postprocess = "classes",
         .asked = !told,
         .labels = told ? kLabels : "",
         .answer = best_five(softmax(three))});
    if (told)
      out.back().beside = {
          {"labels.txt", "ant\nbee\ncow\n"},
          {"config.json", R"({"architecture": "vit_tiny", "num_classes": 3, "pretrained_cfg": {"input_size":)"
                          R"( [3, 64, 64], "crop_pct": 0.95, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}})"}};
  }
  {
    Builder b("input_1", G::f32, {"unk__0", 64, 64, 3});
    b.put("predictions", {"unk__1", 3}, three, true);
    out.push_back({.name = "Keras (tf2onnx)",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=half",
                   .postprocess = "classes act=none",
                   .asked = true,
                   .answer = best_five(softmax(three))});
  }
  {
    Builder b("x", G::f32, {"p2o.DynamicDimension.0", 3, 64, 64});
    b.put("softmax_0.tmp_0", {"p2o.DynamicDimension.1", 2}, {.5F, -1}, true);
    out.push_back({.name = "PP-OCR cls",
                   .graph = std::move(b.g),
                   .preprocess = "cover=0.875 resize=antialias rgb norm=imagenet",
                   .postprocess = "classes act=none",
                   .asked = true,
                   .answer = best_five(softmax({.5F, -1}))});
  }
  const std::vector<float> vector = waves(512);
  double norm = 0;
  for (const float v : vector) norm += double(v) * double(v);
  std::vector<double> unit = as_doubles(vector);
  for (double& v : unit) v /= std::sqrt(norm);
  for (const bool clip : {false, true}) {
    Builder b(clip ? "pixel_values" : "data", G::f32, square("batch"));
    b.put(clip ? "image_embeds" : "fc1", {"batch", 512}, vector);
    out.push_back({.name = clip ? "CLIP image" : "OSNet, ArcFace",
                   .graph = std::move(b.g),
                   .preprocess = clip ? "cover=1 resize=cubic rgb norm=clip" : "stretch rgb norm=half",
                   .postprocess = "embedding unit",
                   .asked = true,
                   .answer = unit});
  }
}

void add_maps_and_points(std::vector<FamilyModel>& out) {
  const char* const imagenet = "stretch rgb norm=imagenet";
  // Class planes of n x n cells; the best of each is known.
  const auto planes = [](std::size_t classes, std::size_t n, std::vector<double>* best) {
    std::vector<float> v(classes * n * n);
    for (std::size_t i = 0; i < n * n; ++i) {
      const std::size_t c = (i / n + 2 * (i % n)) % classes;
      v[c * n * n + i] = 2;
      if (best != nullptr) best->push_back(double(c));
    }
    return v;
  };
  {
    Builder b("pixel_values", G::f32, {"batch", 3, "height", "width"});
    std::vector<double> best;
    b.put("logits", {"batch", 3, 16, 16}, planes(3, 16, &best));
    out.push_back(
        {.name = "SegFormer",
         .graph = std::move(b.g),
         .beside = {{"config.json", R"({"architectures": ["SegformerForSemanticSegmentation"],)"
                                    R"( "id2label": {"0": "ant", "1": "bee", "2": "cow"}})"},
                    {"preprocessor_config.json", std::string(kProcessor) + R"("size": {"height": 64, "width": 64}})"}},
         .preprocess = "stretch resize=antialias rgb norm=imagenet size=64x64",
         .postprocess = "map argmax",
         .labels = kLabels,
         .answer = best});
  }
  {
    Builder b("input", G::f32, square());
    std::vector<double> best;
    b.put("out", {1, 21, 64, 64}, planes(21, 64, &best));
    out.push_back({.name = "DeepLab (torchvision)",
                   .graph = std::move(b.g),
                   .preprocess = imagenet,
                   .postprocess = "map argmax",
                   .asked = true,
                   .answer = best});
  }
  {
    Builder b("input_image", G::f32, square());
    std::vector<float> classes(64 * 64);
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = f(double(i % 19));
    b.put_whole("preds", {1, 64, 64}, classes);
    out.push_back({.name = "BiSeNet",
                   .graph = std::move(b.g),
                   .preprocess = imagenet,
                   .postprocess = "map argmax",
                   .asked = true,
                   .answer = as_doubles(classes)});
  }
  const std::vector<float> depth = waves(64 * 64, .01);
  {
    Builder b("0", G::f32, square());
    b.put("797", {1, 64, 64}, depth);
    out.push_back({.name = "MiDaS",
                   .graph = std::move(b.g),
                   .preprocess = imagenet,
                   .postprocess = "map value",
                   .asked = true,
                   .answer = as_doubles(depth)});
  }
  {
    Builder b("pixel_values", G::f32, square("batch"));
    b.put("predicted_depth", {"batch", 64, 64}, depth);
    out.push_back({.name = "Depth Anything",
                   .graph = std::move(b.g),
                   .preprocess = "stretch resize=cubic rgb norm=imagenet",
                   .postprocess = "map value",
                   .asked = true,
                   .answer = as_doubles(depth)});
  }
  for (const std::size_t outputs : {std::size_t{7}, std::size_t{1}}) {
    Builder b("input.1", G::f32, square());
    std::vector<double> matte;
    double low = 9, most = -9;
    const bool many = outputs > 1;
    const auto value = [&](float v) { return many ? 1 / (1 + std::exp(-double(v))) : double(v); };
    for (const float v : depth) low = std::min(low, value(v)), most = std::max(most, value(v));
    for (const float v : depth) matte.push_back(std::nearbyint(255 * (value(v) - low) / (most - low)));
    for (std::size_t i = 0; i < outputs; ++i)
      b.put(std::to_string(1959 + i), {1, 1, 64, 64}, depth, many ? "Sigmoid" : "");
    out.push_back({.name = outputs > 1 ? "U2Net of another size" : "BiRefNet",
                   .graph = std::move(b.g),
                   .preprocess = imagenet,
                   .postprocess = "map matte",
                   .asked = true,
                   .answer = matte});
  }
  {
    Builder b("input", G::f32, square("batch"));
    std::vector<float> x(17 * 128), y(17 * 128);
    std::vector<double> answer;
    for (std::size_t k = 0; k < 17; ++k) {
      x[k * 128 + 2 * k + 5] = .8F, y[k * 128 + 3 * k + 9] = .6F;
      answer.insert(answer.end(), {double(2 * k + 5) / 2, double(3 * k + 9) / 2, .7});
    }
    b.put("simcc_x", {"batch", 17, 128}, x);
    b.put("simcc_y", {"batch", 17, 128}, y);
    out.push_back({.name = "RTMPose",
                   .graph = std::move(b.g),
                   .preprocess = "stretch crop=0.125 aspect rgb norm=imagenet",
                   .postprocess = "points simcc",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("input.1", G::f32, square());
    std::vector<float> v(17 * 256);
    std::vector<double> answer;
    for (std::size_t k = 0; k < 17; ++k) {
      const std::size_t x = 1 + k % 12, y = 2 + k % 11;
      v[k * 256 + y * 16 + x] = .9F, v[k * 256 + y * 16 + x + 1] = .3F;  // a quarter of a cell to the right
      answer.insert(answer.end(), {4 * (double(x) + .25), 4 * double(y), .9});
    }
    b.put("2947", {1, 17, 16, 16}, v);
    out.push_back({.name = "HRNet",
                   .graph = std::move(b.g),
                   .preprocess = imagenet,
                   .postprocess = "points heatmap",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("input", G::i32, nhwc());
    std::vector<float> v(17 * 3);
    std::vector<double> answer;
    for (std::size_t k = 0; k < 17; ++k) {
      v[3 * k] = f(double(k) / 20), v[3 * k + 1] = f(double(k) / 40), v[3 * k + 2] = .5F;
      answer.insert(answer.end(), {64 * double(k) / 40, 64 * double(k) / 20, .5});
    }
    b.put("output_0", {1, 1, 17, 3}, v);
    out.push_back({.name = "MoveNet",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox rgb norm=raw pad=0",
                   .postprocess = "points yxs",
                   .answer = answer});
  }
  {
    Builder b("input", G::i32, nhwc());
    b.put("output_0", {1, 6, 56}, zeros(6 * 56));
    out.push_back({.name = "MoveNet, several people", .graph = std::move(b.g), .refused = "tensors"});
  }
}

// PaddleOCR's description of a model: what is not of it is left out here.
std::string paddle(const std::string& transforms, const std::string& post) {
  return "Global:\n  model_name: PP-OCR\nPreProcess:\n  transform_ops:\n  - DecodeImage:\n      channel_first: false\n "
         "     "
         "img_mode: BGR\n" +
         transforms + "PostProcess:\n  name: " + post;
}

void add_text(std::vector<FamilyModel>& out) {
  for (const bool told : {false, true}) {
    Builder b("x", G::f32, square("p2o.DynamicDimension.0"));
    std::vector<float> map(64 * 64);
    for (std::size_t y = 20; y < 30; ++y)
      for (std::size_t x = 10; x < 30; ++x) map[y * 64 + x] = .9F;
    b.put("sigmoid_0.tmp_0", {"p2o.DynamicDimension.1", 1, 64, 64}, map);
    // Centres of 20 x 10 cells are 19 x 9 apart; grown by area * 1.5 / perimeter.
    const double d = 19 * 9 * 1.5 / (2 * (19 + 9)), w = 19 + 2 * d, h = 9 + 2 * d;
    FamilyModel f{.name = told ? "PP-OCR det (inference.yml)" : "PP-OCR det",
                  .preprocess = told ? "letterbox at=topleft pad=0 bgr norm=imagenet" : "stretch bgr norm=imagenet",
                  .postprocess = told ? "lines threshold=0.3 score=0.6 grow=1.5" : "lines",
                  .asked = !told,
                  .answer = {20 - w / 2, 25 - h / 2, 20 + w / 2, 25 + h / 2, .9, 0, 20, 25, w, h, 0, .9, 0}};
    if (told)
      f.beside = {
          {"inference.yml",
           paddle("  - NormalizeImage:\n      mean:\n      - 0.485\n      - 0.456\n      - 0.406\n      order: hwc\n"
                  "      scale: 1./255.\n      std:\n      - 0.229\n      - 0.224\n      - 0.225\n",
                  "DBPostProcess\n  thresh: 0.3\n  box_thresh: 0.6\n  max_candidates: 1000\n  unclip_ratio: 1.5\n")}};
    f.graph = std::move(b.g);
    out.push_back(std::move(f));
  }
  {
    Builder b("x", G::f32, square("p2o.DynamicDimension.0"));
    std::vector<float> steps(8 * 40);
    for (std::size_t s = 0; s < 8; ++s) steps[s * 40 + (s < 4 ? 1 : 38)] = .8F;
    b.put("fetch_name_0", {"p2o.DynamicDimension.1", 8, 40}, steps);
    std::string keys;
    for (int i = 0; i < 38; ++i)
      keys += "  - " + std::string(i == 10 ? "'#'" : std::string(1, static_cast<char>('A' + i))) + "\n";
    out.push_back({.name = "PP-OCR rec (inference.yml)",
                   .graph = std::move(b.g),
                   .beside = {{"inference.yml",
                               paddle("  - RecResizeImg:\n      image_shape:\n      - 3\n      - 64\n      - 64\n",
                                      "CTCLabelDecode\n  character_dict:\n" + keys)}},
                   .preprocess = "letterbox at=topleft pad=0.5 bgr norm=half",
                   .postprocess = "text ctc keys=inference.yml",
                   .answer = {'A', 'A' + 37, .8}});
  }
  {
    Builder b("x", G::f32, square("batch"));
    std::vector<float> steps(8 * 40);
    for (std::size_t s = 0; s < 8; ++s) steps[s * 40 + (s < 4 ? 38 : 39)] = .6F;
    b.put("softmax_11.tmp_0", {"batch", 8, 40}, steps);
    std::string keys;
    for (int i = 0; i < 38; ++i) keys += (i == 0 ? "" : "\n") + std::string(1, static_cast<char>('0' + i));
    b.g.metadata("character", keys);
    out.push_back({.name = "RapidOCR rec",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft pad=0.5 bgr norm=half",
                   .postprocess = "text ctc keys=model",
                   .answer = {'0' + 37, ' ', .6}});
  }
  {
    Builder b("x", G::f32, {1, 3, 64, 64});
    std::vector<float> steps(8 * 40);
    const std::size_t best[] = {1, 1, 0, 1, 2, 2, 0, 39};  // a a - a b b - space, of blank, 38 characters and a space
    for (std::size_t s = 0; s < 8; ++s) steps[s * 40 + best[s]] = .8F;
    b.put("softmax_5.tmp_0", {1, 8, 40}, steps);
    std::string keys = "a\nb\n";
    for (char c = 'c'; c <= 'z'; ++c) keys += std::string(1, c) + "\n";
    for (char c = '0'; c <= '9'; ++c) keys += std::string(1, c) + "\n";
    keys += "-\n.\n";
    out.push_back({.name = "PP-OCR rec",
                   .graph = std::move(b.g),
                   .beside = {{"keys.txt", keys}},
                   .preprocess = "stretch rgb norm=half",
                   .postprocess = "text ctc keys=FILE",
                   .asked = true,
                   .answer = {'a', 'a', 'b', ' ', .8}});
  }
  {
    Builder b("input", G::u8, {1, 64, 64, 1});
    std::vector<float> slots(9 * 4);
    const std::size_t best[] = {1, 2, 0, 3, 3, 3, 3, 3, 3};
    for (std::size_t s = 0; s < 9; ++s) slots[s * 4 + best[s]] = .5F;
    b.put("output", {1, 36}, slots);
    out.push_back({.name = "fast-plate-ocr",
                   .graph = std::move(b.g),
                   .beside = {{"keys.txt", "A\nB\n7\n_\n"}},
                   .preprocess = "stretch gray norm=raw",
                   .postprocess = "text slots keys=FILE",
                   .asked = true,
                   .answer = {'B', '7', 'A', .5}});
  }
}

}  // namespace

std::vector<FamilyModel> family_models() {
  std::vector<FamilyModel> out;
  add_yolo(out);
  add_split(out);
  add_faces(out);
  add_priors(out);
  add_traps(out);
  add_known(out);
  add_classifiers(out);
  add_maps_and_points(out);
  add_text(out);
  return out;
}

std::string save(const FamilyModel& family, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : family.beside) std::ofstream(folder + "/" + name, std::ios::binary) << text;
  const std::string path = folder + "/model.onnx";
  family.graph.save(path);
  return path;
}

}  // namespace leat::exec
