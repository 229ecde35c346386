// Group 6: what cuDNN gives for one convolution with bias and ReLU, launched plainly and as a captured graph.
#include "bench/gpu/device/cudnn.h"

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

constexpr int kBatches[] = {1, 2, 4, 8, 16, 32};
constexpr int kQuickBatches[] = {1, 8};
constexpr int kChain = 20;  // convolutions per sample: one launch alone would measure the events

void ask_case(Asker& asker, const std::shared_ptr<Cudnn>& library, Precision precision, int batch) {
  const Conditions conditions{{"precision", name_of(precision)}, {"batch", std::to_string(batch)}};
  const Stream stream;
  std::unique_ptr<CudnnConvolution> convolution;
  asker.yes_no({"cudnn.works", "Does cuDNN run 3x3 convolution + bias + ReLU (64 to 64 channels, 56x56) rightly?",
                "cudnnConvolutionBiasActivationForward; one value within 1 % of the exact sum", conditions},
               [&] {
                 auto made = std::make_unique<CudnnConvolution>(library, precision, batch, stream);
                 const double difference = made->check();
                 const std::string note = made->algorithm() + ", difference " + std::to_string(difference);
                 convolution = std::move(made);
                 return YesNo{difference < 0.01, note};
               });
  if (!convolution) return;
  const auto chain = [&] {
    for (int i = 0; i < kChain; ++i) convolution->launch();
  };
  const auto timed = [&](const char* launch, const std::function<void()>& work) {
    Conditions all = conditions;
    all["launch"] = launch;
    asker.number(
        {"cudnn.time", "How long does one such convolution take?", "events around 20 in a row, divided by 20", all},
        "us", [&] {
          auto times = time_us(stream, asker.repeats(100), work);
          for (double& t : times) t /= kChain;
          return Samples{std::move(times)};
        });
  };
  timed("plain", chain);
  std::unique_ptr<Graph> graph;
  asker.yes_no(
      {"cudnn.capture", "Can it be captured into a CUDA graph?", "stream capture of 20 convolutions", conditions}, [&] {
        graph = std::make_unique<Graph>(stream, chain);
        return YesNo{true};
      });
  if (graph) timed("graph", [&] { graph->launch(stream); });
  asker.number({"cudnn.launch", "What does one plain launch cost the host thread?",
                "host clock around 20 launches, divided by 20; drained after each sample", conditions},
               "us", [&] {
                 Samples samples;
                 for (int i = 0; i < asker.repeats(50); ++i) {
                   for (double t : host_time_us(1, chain, 0)) samples.values.push_back(t / kChain);
                   stream.wait();
                 }
                 return samples;
               });
}

}  // namespace

void ask_cudnn(Asker& asker) {
  open_device();
  std::shared_ptr<Cudnn> library;
  asker.yes_no({"cudnn.found", "Is there a cuDNN 9?", "dlopen of libcudnn.so.9, or of the file that LEAT_CUDNN names"},
               [&] {
                 library = open_cudnn();
                 return YesNo{true, version_of(*library)};
               });
  if (!library) return;
  const std::span<const int> batches =
      asker.quick() ? std::span<const int>(kQuickBatches) : std::span<const int>(kBatches);
  for (Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
    for (int batch : batches) ask_case(asker, library, precision, batch);
  }
}

}  // namespace leat::probe
