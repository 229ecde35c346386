#include "tests/explore/sites.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace leat::explore {
namespace {

// "/anywhere/shm/src/rings/ring.h" -> "shm/src/rings/ring.h"
std::string from_root(std::string_view path) {
  for (const std::string_view top : {"/shm/", "/engine/", "/tests/"})
    if (const auto at = path.rfind(top); at != path.npos) return std::string(path.substr(at + 1));
  return std::string(path);
}

// "void leat::shm::RingProducer<T>::write(const T&) [with T = ...]" -> "RingProducer::write"
std::string plain_name(std::string_view signature) {
  std::string name;
  int depth = 0;
  for (const char c : signature.substr(0, signature.find(" [with"))) {
    if (c == '<') ++depth;
    if (depth == 0 && c == '(') break;
    if (depth == 0) name += c;
    if (c == '>') --depth;
  }
  if (const auto space = name.rfind(' '); space != name.npos) name.erase(0, space + 1);
  for (const std::string_view space : {"leat::shm::", "leat::explore::", "{anonymous}::", "(anonymous namespace)::"})
    if (name.starts_with(space)) name.erase(0, space.size());
  return name;
}

}  // namespace

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::load:
      return "load";
    case Kind::store:
      return "store";
    case Kind::exchange:
      return "compare-and-swap";
    case Kind::failed_exchange:
      return "failed compare-and-swap";
    case Kind::fence:
      return "fence";
  }
  return "";
}

std::string name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
    default:
      return "nothing";
  }
}

std::vector<std::memory_order> weaker(const Site& site) {
  switch (site.order) {
    case std::memory_order_seq_cst:
      return {std::memory_order_acq_rel, std::memory_order_relaxed};
    case std::memory_order_acq_rel:
      return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
      return {std::memory_order_relaxed};
    default:
      return {};
  }
}

Sites::Entry& Sites::entry(const std::source_location& at, Kind kind, std::memory_order order) {
  for (Entry& e : entries_)
    if (e.line == at.line() && e.file == at.file_name() && e.kind == kind) return e;
  const std::string file = from_root(at.file_name());
  entries_.push_back(
      {at.file_name(), at.line(), kind, false, {file, at.line(), plain_name(at.function_name()), kind, order}});
  return entries_.back();
}

std::memory_order Sites::granted(const std::source_location& at, Kind kind, std::memory_order order) {
  if (order == std::memory_order_relaxed) return order;
  Entry& e = entry(at, kind, order);
  e.reached = true;
  if (weakened_ == nullptr || at.line() != weak_.line || kind != weak_.kind || e.site.file != weak_.file) return order;
  return instead_;
}

void Sites::weaken(const Site& site, std::memory_order instead) {
  weak_ = site;
  weakened_ = &weak_;
  instead_ = instead;
}

std::vector<Site> Sites::reached() const {
  std::vector<Site> all;
  for (const Entry& e : entries_)
    if (e.reached && std::find(all.begin(), all.end(), e.site) == all.end()) all.push_back(e.site);
  std::sort(all.begin(), all.end(), [](const Site& a, const Site& b) {
    return std::tie(a.file, a.line, a.kind) < std::tie(b.file, b.line, b.kind);
  });
  return all;
}

void Sites::forget() {
  for (Entry& e : entries_) e.reached = false;
}

}  // namespace leat::explore
