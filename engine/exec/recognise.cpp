#include "engine/exec/recognise.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

namespace leat::exec {
namespace {

struct Port {
  std::string name;
  std::vector<std::int64_t> shape;  // -1: open
};

struct Facts {
  std::map<std::string, std::string> metadata;
  std::vector<Port> inputs, outputs;

  [[nodiscard]] const Port* output(const std::string& name) const {
    const auto at = std::find_if(outputs.begin(), outputs.end(), [&](const Port& p) { return p.name == name; });
    return at == outputs.end() ? nullptr : &*at;
  }
};

Port port_of(const onnx::ValueInfoProto& value) {
  Port out{value.name(), {}};
  for (const auto& dim : value.type().tensor_type().shape().dim())
    out.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return out;
}

// The whole numbers of a Python literal: "[640, 640]", "[17, 3]".
std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> out;
  for (const char* at = text.c_str(); *at != '\0';) {
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    char* end = nullptr;
    out.push_back(std::strtoll(at, &end, 10));
    at = end;
  }
  return out;
}

// "{..., 'nms': True, ...}" or the key's own "True".
bool says(const Facts& f, const std::string& key) {
  if (const auto own = f.metadata.find(key); own != f.metadata.end()) return own->second.starts_with("True");
  const auto args = f.metadata.find("args");
  return args != f.metadata.end() && args->second.find("'" + key + "': True") != std::string::npos;
}

Result<Recognised> from_metadata(const Facts& f) {
  Recognised r;
  const std::string& task = f.metadata.at("task");
  r.from = "its metadata (task " + task + ")";
  r.preprocess = task == "classify" ? "cover=1 rgb norm=unit" : "letterbox rgb norm=unit pad=114/255";
  if (const auto size = f.metadata.find("imgsz"); size != f.metadata.end()) {
    const auto sides = numbers_in(size->second);  // height, width
    const bool open =
        !f.inputs.empty() && f.inputs[0].shape.size() == 4 && (f.inputs[0].shape[2] < 1 || f.inputs[0].shape[3] < 1);
    if (open && sides.size() == 2) r.preprocess += " size=" + std::to_string(sides[1]) + "x" + std::to_string(sides[0]);
  }
  const bool done = says(f, "nms") || says(f, "end2end");
  const auto points = f.metadata.find("kpt_shape");
  if (task == "classify") {
    r.postprocess = "classes";
  } else if (task == "detect") {
    r.postprocess = done ? "boxes columns=x0,y0,x1,y1,s,c" : "boxes layout=yolo8";
  } else if (task == "obb") {
    r.postprocess = done ? "boxes columns=cx,cy,w,h,s,c,a" : "boxes layout=yolo8 extra=angle";
  } else if (task == "pose" && !done && points != f.metadata.end()) {
    const auto shape = numbers_in(points->second);
    if (shape.size() == 2 && shape[1] == 3)
      r.postprocess = "boxes layout=yolo8 extra=points points=" + std::to_string(shape[0]);
  }
  if (r.postprocess.empty())
    return Error{
        "its metadata says task " + task +
        ", of which no answer is made here yet; write postprocess = \"tensors\" to have its outputs as they are"};
  return r;
}

// postprocess by names and shapes; empty: not known. `likely`: the words that such models mostly want before.
std::string from_ports(const Facts& f, std::string* likely, std::string* sign) {
  const auto has = [&](const char* name) { return f.output(name) != nullptr; };
  const auto fed = [&](const char* name) {
    return std::any_of(f.inputs.begin(), f.inputs.end(), [&](const Port& p) { return p.name == name; });
  };
  const std::vector<std::int64_t> first = f.outputs.empty() ? std::vector<std::int64_t>() : f.outputs[0].shape;
  const std::vector<std::int64_t> in = f.inputs.empty() ? std::vector<std::int64_t>() : f.inputs[0].shape;
  std::int64_t cells = 0;
  if (in.size() == 4 && in[2] > 0 && in[3] > 0)
    for (const int s : {8, 16, 32}) cells += (in[2] / s) * (in[3] / s);
  if (has("cls_8") && has("bbox_32"))
    return *sign = "outputs cls_8 .. kps_32 (YuNet)", *likely = "letterbox at=topleft bgr norm=raw pad=0",
           "boxes layout=levels score=0.6 overlap=0.3";
  if (has("simcc_x"))
    return *sign = "output simcc_x", *likely = "stretch crop=0.125 aspect rgb norm=imagenet", "points simcc";
  if (has("detection_boxes"))
    return *sign = "output detection_boxes (TF)", *likely = "stretch rgb norm=raw",
           "boxes layout=split unit=one order=yxyx first=1";
  if (has("pred_boxes"))
    return *sign = "output pred_boxes (DETR)",
           *likely = std::string("stretch rgb norm=imagenet") + (fed("pixel_mask") ? " feed.pixel_mask=ones" : ""),
           "boxes layout=query act=softmax score=0.7";
  if (has("dets") && has("labels") && f.outputs[0].shape.size() == 3 && f.outputs[0].shape[2] == 4)
    return *sign = "outputs dets and labels (RF-DETR)", *likely = "stretch rgb norm=imagenet",
           "boxes layout=query act=sigmoid score=0.5";
  if (fed("orig_target_sizes"))
    return *sign = "input orig_target_sizes (RT-DETR, D-FINE)",
           *likely = "stretch rgb norm=unit feed.orig_target_sizes=wh", "boxes layout=split score=0.5";
  if (has("boxes") && has("scores") && has("labels"))
    return *sign = "outputs boxes, scores, labels (torchvision)", *likely = "stretch rgb norm=unit",
           "boxes layout=split score=0.5";
  if (first.size() == 3 && cells > 0) {
    if (first[2] == cells && first[1] > 4)
      return *sign = "an output [n, 4 + C, " + std::to_string(cells) + "]",
             *likely = "letterbox rgb norm=unit pad=114/255", "boxes layout=yolo8";
    if (first[1] == 3 * cells && first[2] > 5)
      return *sign = "an output [n, 3 x " + std::to_string(cells) + ", 5 + C]",
             *likely = "letterbox rgb norm=unit pad=114/255", "boxes layout=yolo5";
    if (first[2] == 6 && first[1] == 300)
      return *sign = "an output [n, 300, 6]", *likely = "letterbox rgb norm=unit pad=114/255",
             "boxes columns=x0,y0,x1,y1,s,c";
  }
  return {};
}

}  // namespace

Result<Recognised> recognise(const std::string& model_path, const std::string& preprocess) {
  std::ifstream file(model_path, std::ios::binary);
  onnx::ModelProto model;
  if (!file || !model.ParseFromIstream(&file)) return Error{model_path + ": is not an ONNX model"};
  Facts f;
  for (const auto& entry : model.metadata_props()) f.metadata[entry.key()] = entry.value();
  const auto constant = [&](const std::string& name) {
    return std::any_of(model.graph().initializer().begin(), model.graph().initializer().end(),
                       [&](const auto& t) { return t.name() == name; });
  };
  for (const auto& in : model.graph().input())
    if (!constant(in.name())) f.inputs.push_back(port_of(in));
  for (const auto& out : model.graph().output()) f.outputs.push_back(port_of(out));

  if (f.metadata.contains("task") && f.metadata.contains("names")) {
    auto r = from_metadata(f);
    if (!r) return Error{model_path + ": " + r.error()};
    if (!preprocess.empty()) r->preprocess = preprocess;
    return r;
  }
  std::string likely, sign;
  const std::string post = from_ports(f, &likely, &sign);
  if (post.empty()) {
    std::string outputs;
    for (const Port& p : f.outputs) outputs += (outputs.empty() ? "" : ", ") + p.name;
    return Error{model_path + ": nothing in it says what its outputs (" + outputs +
                 ") mean; write postprocess = \"tensors\" to have them as they are, or boxes, points, classes, map, "
                 "text or embedding"};
  }
  if (preprocess.empty())
    return Error{model_path + ": " + sign + " say postprocess = \"" + post +
                 "\", but no file says its colours and their range; likely preprocess = \"" + likely + "\""};
  return Recognised{preprocess, post, sign};
}

}  // namespace leat::exec
