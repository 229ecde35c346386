// The libraries that decode, opened at run time: where one is not there, its codecs are not served. They are opened
// with the device, before a worker's sandbox closes. Thread rule: loading happens once a process; any thread
// afterwards.
#pragma once

#include "cuda/decode/nvcuvid_api.h"
#include "cuda/decode/nvjpeg_api.h"

namespace leat::cuda {

struct Nvdec {
#define X(name, symbol, arguments) Status(*name) arguments = nullptr;
  using Capabilities = nvdec::Capabilities;
  using Decoder = nvdec::Decoder;
  using DecoderParameters = nvdec::DecoderParameters;
  using PictureParameters = nvdec::PictureParameters;
  using DecodeStatus = nvdec::DecodeStatus;
  using MapParameters = nvdec::MapParameters;
  using Parser = nvdec::Parser;
  using ParserParameters = nvdec::ParserParameters;
  using Packet = nvdec::Packet;
  LEAT_NVDEC_FUNCTIONS(X)
#undef X
};

struct Nvjpeg {
#define X(name, symbol, arguments) nvjpeg::Status(*name) arguments = nullptr;
  using Handle = nvjpeg::Handle;
  using State = nvjpeg::State;
  using Image = nvjpeg::Image;
  LEAT_NVJPEG_FUNCTIONS(X)
#undef X
};

// nullptr: it is not there, or lacks a function.
const Nvdec* nvdec_library();
const Nvjpeg* nvjpeg_library();

// 1 << leat_codec for each that this device decodes, by the libraries that are there. Its context is current.
unsigned decoded_codecs();

}  // namespace leat::cuda
