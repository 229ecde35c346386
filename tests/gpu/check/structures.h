// Published structures as lists of layers: what a layer computes, of which earlier ones, with which weights. Weights
// are drawn from a seed (He's variance), as only times and agreement are asked of them; batch normalisation that
// follows a convolution is folded into it, as exporters do. Plain data.
//
//   resnet18, resnet50     He et al., Deep Residual Learning for Image Recognition, table 1
//   mobilenetv2            Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, table 2
//   squeezenet             Iandola et al., SqueezeNet, table 1, in its release 1.1
//   densenet121            Huang et al., Densely Connected Convolutional Networks, table 1
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::check {

struct Layer {
  // conv (weight, bias; then relu or relu6 by `act`), norm (scale and shift of each channel, then act), add (then act),
  // max and mean pooling, global (mean over the picture), concat, dense (weight, bias)
  std::string op, act;
  std::vector<int> in;  // layers; -1: the picture
  int out = 0, kernel = 1, stride = 1, pad = 0, groups = 1;
  std::vector<float> weight, bias;  // [out, in / groups, kernel, kernel]; [out]
  int channels_in = 0;              // of the first
};

struct Structure {
  std::string name;
  std::vector<Layer> layers;
  int cut = 0;  // the layer whose output alone divides the network, near its middle
};

inline constexpr int kPicture = 224;

std::vector<std::string> structure_names();
Structure structure(const std::string& name, std::uint32_t seed = 7);  // throws for another name

// FOLDER/NAME.onnx ([n, 3, 224, 224] to [n, classes]; half: computes in float16), and for whoever builds it otherwise
// FOLDER/NAME.json (the layers, without weights) and FOLDER/NAME.bin (weights and biases in float32, layer by layer).
// Returns the tensor at the cut.
std::string write_structure(const Structure& s, const std::string& folder, bool half);

}  // namespace leat::check
