// What strangers send to the gateway before anything of theirs is believed: the bytes of a connection, read as heads
// and bodies; a body is an inference request against a model of tensors or of pictures, or a form. A head that was
// taken is read the same by whoever reads it again, ends where it says, and has one length; a request that was taken
// asks for bytes that are there and no more.
#include <numeric>

#include "tests/fuzz/harness.h"
#include "tools/leat/gateway/http/head.h"
#include "tools/leat/gateway/http/multipart.h"
#include "tools/leat/gateway/kserve/infer_request.h"

namespace leat::fuzz {
namespace {

gateway::Model model_of(bool pictures) {
  gateway::Model m;
  m.name = "m";
  m.pictures = pictures;
  if (pictures) {
    m.inputs.push_back({.name = "image", .shape = {.dtype = LEAT_U8, .rank = 3, .dims = {0, 0, 3}}});
  } else {
    m.inputs.push_back({.name = "x", .shape = {.dtype = LEAT_F32, .rank = 2, .dims = {2, 3}}, .bytes = 24});
    m.inputs.push_back({.name = "n", .shape = {.dtype = LEAT_I64, .rank = 0}, .bytes = 8});
  }
  m.outputs.push_back({.name = "y", .shape = {.dtype = LEAT_F32, .rank = 1, .dims = {4}}, .bytes = 16});
  return m;
}

std::string framed(const std::string& json, const std::string& binary) {
  return "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: " +
         std::to_string(json.size()) + "\r\nContent-Length: " + std::to_string(json.size() + binary.size()) +
         "\r\n\r\n" + json + binary;
}

void check_request(std::string_view json, std::uint64_t binary, const gateway::Model& model) {
  const auto request = gateway::infer_request_of(json, model, binary);
  if (!request.ok()) return insist(!request.error().empty(), "a refusal without a reason");
  insist(request->inputs.size() == model.inputs.size(), "an input lacks");
  insist(request->items >= 1 && request->items <= gateway::kMaxItems, "no number of items");
  std::uint64_t taken = 0;
  for (const gateway::GivenInput& in : request->inputs) {
    const std::uint64_t bytes = request->bytes.at(in.input);
    insist(bytes != 0 && bytes % request->items == 0, "an input of no size");
    insist(bytes / request->items <= std::uint64_t{gateway::kMaxSide} * gateway::kMaxSide * 3, "an item of no size");
    if (in.binary) {
      taken += bytes;
    } else if (in.place.region.empty() && bytes < 1 << 16) {
      std::vector<std::byte> room(bytes);
      (void)gateway::write_json_tensor(request->head.at("inputs").at(in.at).at("data"), model.inputs[in.input], room);
    }
  }
  insist(taken == binary, "bytes of the body that belong to no input");
  for (const gateway::WantedOutput& out : request->outputs) insist(out.name == "y", "an output that there is not");
}

void check_body(const gateway::Head& head, std::string_view body) {
  static const gateway::Model kModels[] = {model_of(false), model_of(true)};
  const std::string boundary = gateway::boundary_of(head.field("content-type"));
  std::size_t all = 0;
  for (const gateway::FormPart& part : gateway::form_parts(body, boundary)) {
    insist(part.data.data() >= body.data() && part.data.data() + part.data.size() <= body.data() + body.size(),
           "a part outside its body");
    all += part.data.size();
  }
  insist(all <= body.size(), "parts that overlap");
  const std::string_view length = head.field("inference-header-content-length");
  std::size_t json = body.size();
  if (!length.empty() && length.size() < 6) json = static_cast<std::size_t>(std::atoi(std::string(length).c_str()));
  if (json > body.size()) return;
  for (const gateway::Model& model : kModels) check_request(body.substr(0, json), body.size() - json, model);
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string tensors =
      R"({"id":"7","inputs":[{"name":"x","shape":[1,2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},)"
      R"({"name":"n","shape":[1],"datatype":"INT64","data":[-5]}],"outputs":[{"name":"y","parameters":{"binary_data":true}}],)"
      R"("parameters":{"timeout":100000,"priority":1}})";
  const std::string batch =
      R"({"inputs":[{"name":"n","shape":[2],"datatype":"INT64","data":[-5,6]},{"name":"x","shape":[2,2,3],)"
      R"("datatype":"FP32","parameters":{"binary_data_size":48}}]})";
  const std::string picture =
      R"({"inputs":[{"name":"image","shape":[1,2,2,3],"datatype":"UINT8","data":[[[1,2,3],[4,5,6]],[[7,8,9],[0,1,2]]]}]})";
  const std::string form =
      "--b\r\nContent-Disposition: form-data; name=\"image\"; "
      "filename=\"a\"\r\n\r\nJPEG\r\n--b\r\nContent-Disposition: "
      "form-data; name=min_confidence\r\n\r\n0.5\r\n--b--\r\n";
  return {framed(tensors, std::string(24, 'f')), framed(batch, std::string(48, 'b')), framed(picture, ""),
          "GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST /v1/vision/detection HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
          "Expect: 100-continue\r\nContent-Length: " +
              std::to_string(form.size()) + "\r\n\r\n" + form +
              "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  std::string_view left(reinterpret_cast<const char*>(data), size);
  while (!left.empty()) {
    const gateway::HeadRead read = gateway::read_head(left);
    if (read.status != 0) {
      fuzz::insist(read.status >= 400 && !read.why.empty(), "a refusal without a status");
      break;
    }
    if (read.bytes == 0) break;
    fuzz::insist(read.bytes <= left.size() && read.bytes <= gateway::kMaxHeadBytes, "a head behind its end");
    fuzz::insist(left.substr(read.bytes - 4, 4) == "\r\n\r\n", "a head that ends elsewhere");
    fuzz::insist(read.head.field("transfer-encoding").empty(), "a length of two kinds");
    const gateway::HeadRead again = gateway::read_head(left.substr(0, read.bytes));
    fuzz::insist(again.bytes == read.bytes && again.head.content_bytes == read.head.content_bytes,
                 "a head that is read otherwise by itself");
    left.remove_prefix(read.bytes);
    if (read.head.content_bytes > left.size()) break;
    fuzz::check_body(read.head, left.substr(0, read.head.content_bytes));
    left.remove_prefix(read.head.content_bytes);
  }
  return 0;
}
