#include "engine/exec/model_files/external_data.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace leat::exec {
namespace {

using google::protobuf::io::CodedInputStream;

enum class Message : std::uint8_t { none, model, function, graph, node, attribute, sparse, tensor, entry };

// The fields of onnx.proto that lead to TensorProto.external_data; their numbers never change.
struct Step {
  Message in;
  std::uint32_t field;
  Message to;
};
constexpr Step kSteps[] = {{Message::model, 7, Message::graph},       {Message::model, 25, Message::function},
                           {Message::function, 7, Message::node},     {Message::graph, 1, Message::node},
                           {Message::graph, 5, Message::tensor},      {Message::graph, 15, Message::sparse},
                           {Message::node, 5, Message::attribute},    {Message::attribute, 5, Message::tensor},
                           {Message::attribute, 6, Message::graph},   {Message::attribute, 10, Message::tensor},
                           {Message::attribute, 11, Message::graph},  {Message::attribute, 22, Message::sparse},
                           {Message::attribute, 23, Message::sparse}, {Message::sparse, 1, Message::tensor},
                           {Message::sparse, 2, Message::tensor},     {Message::tensor, 13, Message::entry}};
constexpr int kDeepest = 64;              // graphs within graphs
constexpr std::uint32_t kLongest = 4096;  // a path
constexpr std::size_t kMaxFiles = 4096;

Message step(Message in, std::uint32_t field) {
  const auto* const found =
      std::find_if(std::begin(kSteps), std::end(kSteps), [&](const Step& s) { return s.in == in && s.field == field; });
  return found == std::end(kSteps) ? Message::none : found->to;
}

class Walk {
 public:
  explicit Walk(CodedInputStream& in) : in_(in) {}
  std::vector<std::string> found;

  // One message, to its end. False: what follows cannot be read.
  bool message(Message kind, int depth) {
    std::string key, value;
    while (const std::uint32_t tag = in_.ReadTag()) {
      constexpr std::uint32_t kText = 2;
      if ((tag & 7) != kText) {
        if (!skip_number(tag & 7)) return false;
        continue;
      }
      std::uint32_t length = 0;
      if (!in_.ReadVarint32(&length) || length > INT32_MAX) return false;
      const std::uint32_t field = tag >> 3;
      if (kind == Message::entry && (field == 1 || field == 2) && length <= kLongest) {
        if (!in_.ReadString(field == 1 ? &key : &value, static_cast<int>(length))) return false;
      } else if (const Message to = step(kind, field); to != Message::none && depth < kDeepest) {
        const auto limit = in_.PushLimit(static_cast<int>(length));
        if (!message(to, depth + 1)) return false;
        in_.PopLimit(limit);
      } else if (!in_.Skip(static_cast<int>(length))) {
        return false;
      }
    }
    if (key == "location" && !value.empty() && found.size() < kMaxFiles &&
        std::find(found.begin(), found.end(), value) == found.end())
      found.push_back(value);
    return true;
  }

 private:
  bool skip_number(std::uint32_t wire_type) {
    std::uint64_t ignored = 0;
    switch (wire_type) {
      case 0:
        return in_.ReadVarint64(&ignored);
      case 1:
        return in_.Skip(8);
      case 5:
        return in_.Skip(4);
      default:
        return false;
    }
  }

  CodedInputStream& in_;
};

}  // namespace

std::vector<std::string> external_files(int fd) {
  if (lseek(fd, 0, SEEK_SET) != 0) return {};
  google::protobuf::io::FileInputStream file(fd);
  CodedInputStream in(&file);
  Walk walk(in);
  (void)walk.message(Message::model, 0);
  return std::move(walk.found);
}

}  // namespace leat::exec
