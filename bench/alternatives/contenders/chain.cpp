#include "bench/alternatives/contenders/chain.h"

#include <algorithm>
#include <array>

#include "bench/alternatives/pictures.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"

namespace leat::bench::alternatives {

Buffer::Buffer(leat_format format) : pixels_(std::make_unique<std::uint8_t[]>(std::size_t{kWidth} * kHeight * 3 / 2)) {
  const std::uint32_t chroma = format == LEAT_FORMAT_nv12 ? kWidth : kWidth / 2;  // bytes of a row
  frame_.format = format;
  frame_.width = kWidth, frame_.height = kHeight, frame_.plane_count = format == LEAT_FORMAT_nv12 ? 2 : 3;
  frame_.bytes = std::uint64_t{kWidth} * kHeight * 3 / 2;
  std::uint8_t* at = pixels_.get();
  for (std::uint32_t p = 0; p < frame_.plane_count; ++p) {
    frame_.planes[p] = at;
    frame_.strides[p] = frame_.row_bytes[p] = p == 0 ? kWidth : chroma;
    frame_.rows[p] = p == 0 ? kHeight : kHeight / 2;
    at += std::size_t{frame_.rows[p]} * frame_.strides[p];
  }
}

Result<Chain> Chain::open(leat_format format) {
  const auto config = daemon::read_config(LEAT_MODELS "/shapes.toml");
  if (!config.ok()) return Error{config.error()};
  const daemon::ApplicationConfig& application = config->applications.front();
  Chain chain;
  chain.cap_ = application.application.modules[1].fan_out_cap;
  for (const std::size_t m : {std::size_t{0}, std::size_t{1}}) {
    const daemon::ModuleConfig& module = application.modules[m];
    auto opened = exec::Module::open({.name = application.application.modules[m].name,
                                      .executor = module.executor,
                                      .model_path = module.model_path,
                                      .preprocess = module.preprocess,
                                      .postprocess = module.postprocess,
                                      .labels = module.labels,
                                      .first_head = daemon::first_head(application, m),
                                      .batch_max = m == 0 ? 1 : chain.cap_});
    if (!opened.ok()) return Error{opened.error()};
    (m == 0 ? chain.detect_ : chain.classify_) = std::move(*opened);
  }
  if (!chain.run(Buffer(format).frame())) return Error{"the models cannot be run"};
  return chain;
}

bool Chain::run(const leat_frame& frame) {
  exec::FrameView view{.format = frame.format,
                       .width = frame.width,
                       .height = frame.height,
                       .color = shm::color_from(frame.color_range, frame.color_matrix),
                       .bytes = frame.bytes};
  for (std::uint32_t p = 0; p < frame.plane_count; ++p)
    view.planes[p] = frame.planes[p], view.strides[p] = frame.strides[p];
  std::array<exec::Item, exec::kMaxRows> items;
  std::array<exec::ItemReport, exec::kMaxRows> reports;
  items[0] = {.frame = view, .result = result_.get()};
  if (!detect_->run({items.data(), 1}, reports) || reports[0].reason != Reason::none) return false;
  const std::uint32_t found = std::min(reports[0].fan_out, cap_);
  for (std::uint32_t i = 0; i < found; ++i)
    items[i] = {.frame = view, .result = result_.get(), .detection = static_cast<std::int32_t>(i)};
  return found == 0 || classify_->run({items.data(), found}, reports);
}

Result<std::vector<Chain>> open_chains(leat_format format, std::size_t count) {
  std::vector<Chain> chains;
  while (chains.size() < count) {
    auto chain = Chain::open(format);
    if (!chain.ok()) return Error{chain.error()};
    chains.push_back(std::move(*chain));
  }
  return chains;
}

}  // namespace leat::bench::alternatives
