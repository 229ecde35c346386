#include "tools/leat/gateway/kserve/joined_outputs.h"

#include <algorithm>
#include <cstring>

namespace leat::gateway {
namespace {

bool same_kind(const leat_part_view& a, const leat_part_view& b) {
  return a.dtype == b.dtype && a.rank == b.rank && a.count == b.count && std::equal(a.dims, a.dims + a.rank, b.dims);
}

}  // namespace

std::string JoinedOutputs::add(std::uint32_t item, const std::vector<FoundOutput>& outputs) {
  if (outputs_.empty())
    for (const FoundOutput& output : outputs) {
      Joined& joined = outputs_.emplace_back();
      joined.one = output;
      joined.name = output.part.name;
      if (!joined.bytes.take(held_, items_ * output.part.count * leat_dtype_bytes(output.part.dtype)))
        return "there is no room for the outputs of so many items at once; send fewer";
    }
  if (outputs.size() != outputs_.size()) return "one item has other outputs than another; send them one by one";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const leat_part_view& part = outputs[i].part;
    Joined& joined = outputs_[i];
    if (joined.name != part.name || !same_kind(joined.one.part, part))
      return "output '" + joined.name + "' has another shape for each item; send them one by one";
    const std::uint64_t bytes = part.count * leat_dtype_bytes(part.dtype);
    if (bytes != 0) std::memcpy(joined.bytes.bytes().data() + item * bytes, part.data, bytes);
  }
  return {};
}

std::vector<FoundOutput> JoinedOutputs::all() const {
  std::vector<FoundOutput> out;
  for (const Joined& joined : outputs_) {
    FoundOutput& one = out.emplace_back(joined.one);
    one.part.data = joined.bytes.text().data();
    one.part.name = joined.name.c_str();
    one.part.count *= items_;
    one.part.bytes = joined.bytes.text().size();
  }
  return out;
}

}  // namespace leat::gateway
