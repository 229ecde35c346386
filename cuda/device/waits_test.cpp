// Each wait of a device and of a module on it, left out once (forgotten_waits.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "cuda/device/forgotten_waits.h"
#include "cuda/device/modules.h"
#include "engine/exec/device_plugin.h"
#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/onnx_graphs.h"
#include "leat/frame_format.h"

namespace leat {
namespace {

// Memory is zeroed before its descriptor can reach another process, which may write at once.
void memory_is_zeroed_first(int forgotten) {
  Scenario s;
  s.mutate(forgotten);
  const leat_device_memory m = s.memory(1 << 20);
  s.end(1);
  int fd = -1;
  leat_device_memory theirs{};
  need(s.api->export_memory(s.d, &m, &fd, nullptr, 0) == LEAT_DEVICE_OK);
  need(s.api->import_memory(s.d, fd, m.bytes, &theirs, nullptr, 0) == LEAT_DEVICE_OK);
  std::memset(theirs.address, 7, 4096);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  need(static_cast<const char*>(m.address)[4095] == 7);
}

leat_picture_job picture_of(const std::vector<std::uint8_t>& slot, std::uint32_t side, void* out) {
  leat_picture_job job{};
  job.planes[0] = job.slot = slot.data();
  job.slot_bytes = slot.size(), job.strides[0] = side, job.format = LEAT_FORMAT_gray8, job.width = job.height = side;
  job.scale_x = job.scale_y = static_cast<float>(side) / 16, job.window_width = job.window_height = 16;
  job.factors[0][0] = 1, job.high[0] = 255, job.out = out;
  return job;
}

// A larger upload between two waits: what is on its way still needs the smaller room.
void room_for_uploads_grows(int forgotten) {
  Scenario s;
  const leat_picture_target target{16, 16, 1, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  const leat_device_memory out = s.memory(1 << 20);
  const std::vector<std::uint8_t> small(64 * 64, 9), large(2048 * 2048, 11);
  const leat_picture_job first = picture_of(small, 64, out.address),
                         second = picture_of(large, 2048, static_cast<char*>(out.address) + 4096);
  need(s.api->pictures(s.d, &target, &first, 1, nullptr, 0) == LEAT_DEVICE_OK);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  need(s.api->pictures(s.d, &target, &first, 1, nullptr, 0) == LEAT_DEVICE_OK);
  s.mutate(forgotten);
  need(s.api->pictures(s.d, &target, &second, 1, nullptr, 0) == LEAT_DEVICE_OK);
  s.end(2);  // its own, and that of the larger room, which is memory_is_zeroed_first's
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  need(static_cast<const float*>(out.address)[255] == 9 && static_cast<const float*>(out.address)[1024 + 255] == 11);
}

// What cannot be pinned goes by way of memory that can: the next needs that while the one before is on its way.
void staging_is_read_before_it_is_used_again(int forgotten) {
  Scenario s(LEAT_PICTURE_MEASURED);
  s.pins_no_read_only();
  s.d = s.open(LEAT_PICTURE_UPLOADED);
  s.delays(kWaitDelayUs);
  const std::vector<char> first(4096, 3), second(4096, 5);
  const leat_device_memory to = s.memory(1 << 20);
  for (const auto* from : {&first, &second})
    need(s.api->host_register(s.d, const_cast<char*>(from->data()), from->size(), 1, nullptr, 0) == LEAT_DEVICE_OK);
  auto* const at = static_cast<char*>(to.address);
  need(s.api->copy(s.d, at, first.data(), first.size(), nullptr, 0) == LEAT_DEVICE_OK);
  s.mutate(forgotten);
  need(s.api->copy(s.d, at + 4096, second.data(), second.size(), nullptr, 0) == LEAT_DEVICE_OK);
  s.end(1);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  need(at[0] == 3 && at[4095] == 3 && at[4096] == 5 && at[8191] == 5);
}

// The ways to read a picture are timed; then what they used is given back.
void measurement_ends_before_its_memory(int forgotten) {
  Scenario s(LEAT_PICTURE_MEASURED);
  s.delays(200);
  s.mutate(forgotten);
  s.d = s.open(LEAT_PICTURE_MEASURED);
  // One for the jobs, one for the target, two for the first upload's room, and fourteen runs.
  s.end(18);
  leat_device_info info{};
  s.api->info(s.d, &info);
  const leat_device_memory again = s.memory(1 << 20);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK && again.address != nullptr);
}

// Whoever closes has what it put on the stream before.
void closing_ends_what_was_begun(int forgotten) {
  Scenario s;
  const leat_device_memory m = s.memory(1 << 20);
  std::memset(m.address, 5, 4096);
  // Of several: a stream that is destroyed ends what it is at, and drops the rest.
  std::vector<std::vector<char>> back(4, std::vector<char>(4096));
  for (auto& to : back) need(s.api->copy(s.d, to.data(), m.address, to.size(), nullptr, 0) == LEAT_DEVICE_OK);
  s.mutate(forgotten);
  s.api->close(s.d);
  s.end(1);
  need(back.back()[4095] == 5);
}

// What a run takes is read off stamps that the device has reached.
void timing_ends_before_it_is_read(int forgotten) {
  Scenario s;
  s.mutate(forgotten);
  int runs = 0;
  const auto add = [](void* to) { ++*static_cast<int*>(to); };
  const exec::TimedWay way{[&] { need(s.api->enqueue(s.d, add, &runs, nullptr, 0) == LEAT_DEVICE_OK); }, nullptr};
  std::uint64_t took = 0;
  try {
    took = exec::time_on_device(*s.api, s.d, {&way, 1})[0];
  } catch (const std::runtime_error&) {
    need(false);
  }
  s.end(5);
  need(took > 0 && runs == 6);
}

// A batch's answers are read, and its frames and features change hands, after it.
[[maybe_unused]] void batch_ends_before_its_answers(int forgotten) {
  Scenario s;
  s.api->close(s.d);
  auto device = exec::Device::open(LEAT_DEVICE_PLUGIN, "");
  need(device.ok());
  exec::ModuleSpec spec;
  spec.name = "waits/classify";
  spec.executor = "onnx";
  spec.model_path = LEAT_MODELS "/classify.onnx";
  spec.preprocess = "stretch mean=0.5 std=0.5";
  spec.postprocess = "classes";
  spec.batch_max = 2;
  spec.device = device->get();
  auto module = exec::Module::open(spec);
  if (!module.ok()) std::fprintf(stderr, "%s\n", module.error().c_str());
  need(module.ok());
  std::vector<std::uint8_t> pixels(64 * 64 * 3);
  std::array<exec::Item, 2> items{};
  std::array<leat_result, 2> answers{}, clean{};
  std::array<exec::ItemReport, 2> reports{};
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].frame.planes[0] = pixels.data();
    items[i].frame.strides[0] = 64 * 3;
    items[i].frame.format = LEAT_FORMAT_rgb24;
    items[i].frame.width = items[i].frame.height = 64;
    items[i].frame.bytes = pixels.size();
  }
  const auto run = [&](std::uint8_t grey, std::array<leat_result, 2>& into) {
    for (std::size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<std::uint8_t>(p % 5 == 0 ? grey : 255 - grey);
    for (std::size_t i = 0; i < items.size(); ++i) into[i] = {}, items[i].result = &into[i];
    return (*module)->run(items, reports, nullptr, nullptr);
  };
  need(run(0, clean) && run(200, clean));
  const std::array<leat_result, 2> wanted = clean;
  need(run(0, clean) && std::memcmp(&clean, &wanted, sizeof wanted) != 0);
  s.mutate(forgotten);
  const bool ran = run(200, answers);
  std::fill(pixels.begin(), pixels.end(), std::uint8_t{0});  // the slot is the client's again
  s.end(1);
  need(ran && std::memcmp(&answers, &wanted, sizeof wanted) == 0);
}

// Two batches at once on the stream: the answers of each are read behind its own mark, and then its frames change
// hands.
[[maybe_unused]] void each_of_two_batches_ends_before_its_answers(int forgotten) {
  Scenario s;
  s.api->close(s.d);
  auto device = exec::Device::open(LEAT_DEVICE_PLUGIN, "");
  need(device.ok());
  auto stream = exec::HostStream::open();
  need(stream.ok());
  exec::ModuleSpec spec;
  spec.name = "waits/classify";
  spec.model_path = LEAT_MODELS "/classify.onnx";
  spec.preprocess = "stretch mean=0.5 std=0.5";
  spec.postprocess = "classes";
  spec.batch_max = 2;
  spec.device = device->get();
  spec.sets = exec::kSets;
  auto module = exec::Module::open(spec);
  if (!module.ok()) std::fprintf(stderr, "%s\n", module.error().c_str());
  need(module.ok() && (*module)->sets() == exec::kSets);
  std::array<Batch, 2> batches{Batch(2, 3), Batch(2, 250)};
  std::array<std::vector<leat_result>, 2> wanted;
  for (std::uint32_t b : {0u, 1u}) {  // one behind the other; each set then has its room
    (*module)->begin(b, **stream, batches[b].items);
    need((*module)->finish(b, batches[b].reports));
    wanted[b] = batches[b].answers;
  }
  need(!same(wanted[0], wanted[1]));
  for (std::uint32_t b : {0u, 1u}) {  // nothing of what is wanted lies in its set
    (*module)->begin(b, **stream, batches[1 - b].items);
    need((*module)->finish(b, batches[1 - b].reports));
  }
  for (Batch& b : batches) std::fill(b.answers.begin(), b.answers.end(), leat_result{});
  s.mutate(forgotten);
  for (std::uint32_t b : {0u, 1u}) (*module)->begin(b, **stream, batches[b].items);
  bool good = true;
  for (std::uint32_t b : {0u, 1u}) {
    good = (*module)->finish(b, batches[b].reports) && good;
    std::fill(batches[b].pixels.begin(), batches[b].pixels.end(), std::uint8_t{0});  // the slot is the client's again
    good = same(batches[b].answers, wanted[b]) && good;
  }
  s.end(2);
  need(good);
}

INSTANTIATE_TEST_SUITE_P(EachWait, LeftOut,
                         testing::Values(Wait{"MemoryIsZeroedFirst", memory_is_zeroed_first, 0},
                                         Wait{"RoomForUploadsGrows", room_for_uploads_grows, 0},
                                         Wait{"StagingIsReadBeforeItIsUsedAgain",
                                              staging_is_read_before_it_is_used_again, 0},
                                         Wait{"MeasurementEndsBeforeItsMemory", measurement_ends_before_its_memory, 17},
                                         Wait{"ClosingEndsWhatWasBegun", closing_ends_what_was_begun, 0},
                                         Wait{"TimingEndsBeforeItIsRead", timing_ends_before_it_is_read, 0}),
                         [](const auto& p) { return std::string(p.param.name); });

#ifndef __SANITIZE_THREAD__  // ONNX Runtime is not instrumented
INSTANTIATE_TEST_SUITE_P(OfAModule, LeftOut,
                         testing::Values(Wait{"BatchEndsBeforeItsAnswers", batch_ends_before_its_answers, 0},
                                         Wait{"FirstOfTwo", each_of_two_batches_ends_before_its_answers, 0},
                                         Wait{"SecondOfTwo", each_of_two_batches_ends_before_its_answers, 1}),
                         [](const auto& p) { return std::string(p.param.name); });
#endif

}  // namespace
}  // namespace leat
