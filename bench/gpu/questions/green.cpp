// Group 4: green contexts, i.e. several SM partitions inside one process.
#include <array>
#include <optional>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

constexpr int kBatch = 64;  // several waves of blocks on the largest device there is

CUdevResource all_sms() {
  CUdevResource resource{};
  LEAT_DRIVER(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
  return resource;
}

// A green context over some SMs, with a stream. Kernels go to the stream while its context is current.
class GreenContext {
 public:
  explicit GreenContext(CUdevResource sms) : sms_(static_cast<int>(sms.sm.smCount)) {
    CUdevResourceDesc description = nullptr;
    LEAT_DRIVER(cuDevResourceGenerateDesc, &description, &sms, 1);
    LEAT_DRIVER(cuGreenCtxCreate, &green_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    try {
      LEAT_DRIVER(cuCtxFromGreenCtx, &context_, green_);
      LEAT_DRIVER(cuGreenCtxStreamCreate, &stream_, green_, CU_STREAM_NON_BLOCKING, 0);
    } catch (...) {
      driver().cuGreenCtxDestroy(green_);
      throw;
    }
  }
  GreenContext(const GreenContext&) = delete;
  ~GreenContext() {
    if (stream_ != nullptr) driver().cuStreamDestroy(stream_);
    driver().cuGreenCtxDestroy(green_);
  }
  [[nodiscard]] int sms() const noexcept { return sms_; }
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

 private:
  int sms_;
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

// Makes a context current for a scope.
class Current {
 public:
  explicit Current(CUcontext context) {
    LEAT_DRIVER(cuCtxGetCurrent, &before_);
    LEAT_DRIVER(cuCtxSetCurrent, context);
  }
  Current(const Current&) = delete;
  ~Current() { driver().cuCtxSetCurrent(before_); }

 private:
  CUcontext before_ = nullptr;
};

struct Split {
  CUdevResource part{}, rest{};
};

// At least `wanted` SMs, and the rest.
Split split(unsigned wanted) {
  const CUdevResource all = all_sms();
  Split result;
  unsigned groups = 1;
  LEAT_DRIVER(cuDevSmResourceSplitByCount, &result.part, &groups, &all, &result.rest, 0U, wanted);
  if (groups != 1) throw NotApplicable("the device cannot be split so");
  return result;
}

std::vector<double> time_convolution(const GreenContext& green, int repeats) {
  const FixedConvolution convolution(kBatch);
  const Current current(green.context());
  return time_us(green.stream(), repeats, [&] { convolution.launch(green.stream()); });
}

void ask_sizes(Asker& asker) {
  asker.number({"green.sms_all", "How many SMs can be divided?", "cuDeviceGetDevResource"}, "count", [&] {
    const CUdevResource all = all_sms();
    return Samples{{static_cast<double>(all.sm.smCount)}};
  });
  asker.number({"green.sms_smallest", "How many SMs has the smallest part?", "cuDevSmResourceSplitByCount for one SM"},
               "count", [&] {
                 const Split found = split(1);
                 return Samples{{static_cast<double>(found.part.sm.smCount)},
                                std::to_string(found.rest.sm.smCount) + " SMs in the rest"};
               });
  int total = 0;
  try {
    total = static_cast<int>(all_sms().sm.smCount);
  } catch (const std::exception&) {
    return;  // the questions above say why
  }
  for (int percent : {12, 25, 50, 75}) {
    const int wanted = std::max(1, total * percent / 100);
    const Conditions conditions{{"sms_wanted", std::to_string(wanted)}};
    asker.number({"green.time", "How long does the fixed convolution take on part of the SMs?",
                  "events in the green context's stream; the same work as in the MPS group", conditions},
                 "us", [&] {
                   const GreenContext green(split(static_cast<unsigned>(wanted)).part);
                   int ran = 0;
                   {
                     const Current current(green.context());
                     ran = count_sms(green.stream());
                   }
                   return Samples{time_convolution(green, asker.repeats(100)),
                                  std::to_string(green.sms()) + " SMs given, " + std::to_string(ran) + " ran blocks"};
                 });
  }
  asker.number({"green.time",
                "How long does the fixed convolution take on part of the SMs?",
                "events in a plain stream, for comparison",
                {{"sms_wanted", "all, no green context"}}},
               "us", [&] {
                 const FixedConvolution convolution(kBatch);
                 const Stream stream;
                 return Samples{time_us(stream, asker.repeats(100), [&] { convolution.launch(stream); })};
               });
}

// Half of the SMs is timed while other work of this process fills the device from another context.
void ask_beside(Asker& asker) {
  constexpr int kQueued = 40;  // launches of other work per sample, enough to outlast it
  const auto beside = [&](const char* others, bool green_others) {
    asker.number({"green.time_beside",
                  "How long does half of the SMs take while another context of the process is busy?",
                  "the other context has 40 convolutions queued when each sample begins",
                  {{"others", others}}},
                 "us", [&] {
                   const Split halves = split(all_sms().sm.smCount / 2);
                   const GreenContext half(halves.part);
                   std::optional<GreenContext> rest;
                   if (green_others) rest.emplace(halves.rest);
                   const Stream plain;
                   const FixedConvolution convolution(kBatch), load(kBatch);
                   const cudaStream_t load_stream = rest ? rest->stream() : static_cast<cudaStream_t>(plain);
                   const auto fill = [&] {
                     std::optional<Current> current;
                     if (rest) current.emplace(rest->context());
                     for (int i = 0; i < kQueued; ++i) load.launch(load_stream);
                   };
                   Samples samples;
                   int still_busy = 0;
                   for (int i = 0; i < asker.repeats(50); ++i) {
                     fill();
                     {
                       const Current current(half.context());
                       for (double t : time_us(
                                half.stream(), 1, [&] { convolution.launch(half.stream()); }, 0))
                         samples.values.push_back(t);
                     }
                     if (cudaStreamQuery(load_stream) == cudaErrorNotReady) ++still_busy;
                     LEAT_CUDA(cudaStreamSynchronize(load_stream));
                   }
                   samples.note =
                       "the other work was still running after " + std::to_string(still_busy) + " of the samples";
                   return samples;
                 });
  };
  beside("a green context with the rest of the SMs", true);
  beside("a plain stream over all SMs", false);
}

void ask_create(Asker& asker) {
  asker.number({"green.create", "What does making and destroying a green context cost?", "host clock"}, "us", [&] {
    const CUdevResource half = split(all_sms().sm.smCount / 2).part;
    return Samples{host_time_us(asker.repeats(30), [&] { const GreenContext green(half); })};
  });
}

}  // namespace

void ask_green(Asker& asker) {
  open_device();
  ask_sizes(asker);
  ask_beside(asker);
  ask_create(asker);
}

}  // namespace leat::probe
