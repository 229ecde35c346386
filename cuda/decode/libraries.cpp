#include "cuda/decode/libraries.h"

#include <dlfcn.h>

#include <string>

#include "leat/frame_format.h"

namespace leat::cuda {
namespace {

template <class Table>
struct Loaded {
  Table table;
  bool whole = false;
};

void* first_of(std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

#define X(name, symbol, arguments)                                                        \
  out.table.name = reinterpret_cast<decltype(out.table.name)>(::dlsym(library, #symbol)); \
  out.whole = out.whole && out.table.name != nullptr;

Loaded<Nvdec> load_nvdec() {
  Loaded<Nvdec> out;
  void* const library = first_of({"libnvcuvid.so.1"});
  if (library == nullptr) return out;
  out.whole = true;
  LEAT_NVDEC_FUNCTIONS(X)
  return out;
}

Loaded<Nvjpeg> load_nvjpeg() {
  Loaded<Nvjpeg> out;
  const std::string name = "libnvjpeg.so." + std::to_string(LEAT_CUDA_MAJOR);
  void* const library = first_of({name, "/usr/local/cuda/lib64/" + name});
  if (library == nullptr) return out;
  out.whole = true;
  LEAT_NVJPEG_FUNCTIONS(X)
  return out;
}
#undef X

}  // namespace

const Nvdec* nvdec_library() {
  static const Loaded<Nvdec> kLoaded = load_nvdec();
  return kLoaded.whole ? &kLoaded.table : nullptr;
}

const Nvjpeg* nvjpeg_library() {
  static const Loaded<Nvjpeg> kLoaded = load_nvjpeg();
  return kLoaded.whole ? &kLoaded.table : nullptr;
}

unsigned decoded_codecs() {
  unsigned out = nvjpeg_library() != nullptr ? 1u << LEAT_CODEC_jpeg : 0;
  const Nvdec* const library = nvdec_library();
  if (library == nullptr) return out;
  constexpr struct {
    unsigned codec;
    int theirs;
  } kCodecs[] = {{LEAT_CODEC_h264, nvdec::kH264}, {LEAT_CODEC_hevc, nvdec::kHevc}, {LEAT_CODEC_av1, nvdec::kAv1}};
  for (const auto& codec : kCodecs) {
    nvdec::Capabilities asked{};
    asked.codec = codec.theirs;
    asked.chroma = nvdec::kChroma420;
    if (library->capabilities(&asked) == kSuccess && asked.supported != 0) out |= 1u << codec.codec;
  }
  return out;
}

}  // namespace leat::cuda
