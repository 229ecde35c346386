// Pictures: jobs go to the device by one copy and run in one launch. A frame is read where it lies when its slot is
// registered and that was measured faster, else uploaded once, however many jobs it has.
#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/device/device.h"
#include "cuda/device/picture_body.h"
#include "leat/executor.h"
#include "leat/frame_format.h"

namespace leat::cuda {
// Kernels for every device served, or a single zero byte where the build had no nvcc (CMakeLists.txt).
extern "C" const unsigned char leat_picture_image[];
extern "C" const unsigned long leat_picture_image_bytes;

static_assert(kNv12 == LEAT_FORMAT_nv12 && kI420 == LEAT_FORMAT_i420 && kRgb24 == LEAT_FORMAT_rgb24 &&
              kBgr24 == LEAT_FORMAT_bgr24 && kGray8 == LEAT_FORMAT_gray8);
static_assert(kFloat32 == LEAT_F32 && kFloat16 == LEAT_F16 && kBytes == LEAT_U8);

namespace {
constexpr std::uint32_t kBlockX = 32, kBlockY = 8;
constexpr std::uint64_t kUploadAlignment = 256;
constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kUploadAlignment - 1) / kUploadAlignment * kUploadAlignment;
}
}  // namespace

void Device::load_kernels() {
  if (leat_picture_image_bytes <= 1 && !cuda_->stand_in)
    throw Failed(LEAT_DEVICE_FAILED,
                 "this build has no picture kernels, because no nvcc was there; build it where a CUDA "
                 "toolkit is installed");
  check("cuModuleLoadData", cuda_->module_load(&module_, leat_picture_image));
  check("cuModuleGetFunction", cuda_->function_get(&picture_, module_, "leat_picture"));
  check("cuModuleGetFunction", cuda_->function_get(&picture_weighted_, module_, "leat_picture_weighted"));
  for (Set& set : sets_)
    set.jobs = static_cast<leat_picture_job*>(host_allocate(LEAT_DEVICE_MAX_JOBS * sizeof(leat_picture_job)));
  device_jobs_ = allocate(LEAT_DEVICE_MAX_JOBS * sizeof(leat_picture_job), false);
}

const std::uint8_t* Device::readable(const leat_picture_job& job) {
  const Registered* const pinned = registered(job.slot, job.slot_bytes);
  if (in_place(pinned)) return reinterpret_cast<const std::uint8_t*>(pinned->address) + (job.slot - pinned->at);
  for (const Upload& u : uploaded_)
    if (u.slot == job.slot && u.bytes == job.slot_bytes) return static_cast<std::uint8_t*>(uploads_.address) + u.offset;
  auto* const to = static_cast<std::uint8_t*>(uploads_.address) + upload_end_;
  const bool pages = pinned == nullptr || pinned->address == 0;
  copy_pinned(to, pages ? staged(job.slot, job.slot_bytes) : job.slot, job.slot_bytes);
  uploaded_.push_back({job.slot, job.slot_bytes, upload_end_});
  upload_end_ += round_up(job.slot_bytes);
  return to;
}

// Room for all of them before the first is sent: what is on the stream points into it.
void Device::reserve_uploads(std::span<const leat_picture_job> jobs) {
  std::uint64_t needed = 0, by_staging = 0;
  const std::uint8_t* last = nullptr;
  for (const leat_picture_job& job : jobs) {
    if (job.slot == nullptr || job.slot == std::exchange(last, job.slot)) continue;
    const Registered* const pinned = registered(job.slot, job.slot_bytes);
    if (in_place(pinned)) continue;
    needed += round_up(job.slot_bytes);
    if (pinned == nullptr || pinned->address == 0) by_staging += job.slot_bytes;
  }
  if (upload_end_ + needed <= uploads_.bytes && by_staging <= now().staging_bytes - now().staging_end) return;
  wait();
  reserve_staging(by_staging);
  if (needed <= uploads_.bytes) return;
  release(uploads_);
  uploads_ = allocate(needed, false);
}

std::uint32_t Device::note_pictures(std::span<const leat_picture_job> jobs) {
  if (jobs.size() > LEAT_DEVICE_MAX_JOBS - now().job_count)
    throw Failed(LEAT_DEVICE_FAILED, "more than 256 pictures between two waits; lower the batch");
  reserve_uploads(jobs);
  const std::uint32_t first = now().job_count;
  leat_picture_job* const table = now().jobs + first;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    table[i] = jobs[i];
    if (jobs[i].slot == nullptr) continue;  // decoded: it lies on the device
    const std::uint8_t* const slot = readable(jobs[i]);
    for (auto& plane : table[i].planes)
      if (plane != nullptr) plane = slot + (plane - jobs[i].slot);
  }
  now().job_count += static_cast<std::uint32_t>(jobs.size());
  return first;
}

void Device::put_pictures(std::uint32_t set, const leat_picture_target& target, std::uint32_t first,
                          std::uint32_t count) {
  if (set >= sets_.size() || count > LEAT_DEVICE_MAX_JOBS - first)
    throw Failed(LEAT_DEVICE_FAILED, "a device has two sets of 256 pictures");
  auto* on_device = static_cast<leat_picture_job*>(device_jobs_.address) + first;
  copy_pinned(on_device, sets_[set].jobs + first, count * sizeof(leat_picture_job));
  leat_picture_target by_value = target;
  void* arguments[] = {&on_device, &by_value};
  check("cuLaunchKernel", cuda_->launch(target.resize == LEAT_RESIZE_linear ? picture_ : picture_weighted_,
                                        (target.width + kBlockX - 1) / kBlockX, (target.height + kBlockY - 1) / kBlockY,
                                        count, kBlockX, kBlockY, 1, 0, stream_, arguments, nullptr));
}

void Device::pictures(const leat_picture_target& target, std::span<const leat_picture_job> jobs) {
  if (jobs.empty()) return;
  const std::uint32_t first = note_pictures(jobs);
  put_pictures(set_, target, first, static_cast<std::uint32_t>(jobs.size()));
}

void Device::ready_pictures(std::span<const leat_picture_job> jobs) {
  if (note_pictures(jobs) != 0) throw Failed(LEAT_DEVICE_FAILED, "the set has pictures already");
}

// One 1080p frame, the best of six runs of each way by the device's own time: the bus and the platform decide which,
// and not what else a host does.
void Device::measure_picture_source() {
  constexpr std::uint32_t kWidth = 1920, kHeight = 1080;
  const std::uint32_t side = cuda_->stand_in ? 32 : 640;  // a loop on the host has nothing to measure
  constexpr std::uint64_t kBytesOfFrame = std::uint64_t{kWidth} * kHeight * 3 / 2;
  auto* const frame = static_cast<std::uint8_t*>(host_allocate(kBytesOfFrame));
  leat_device_memory out{};
  try {
    std::memset(frame, 128, kBytesOfFrame);
    out = allocate(std::uint64_t{3} * side * side * sizeof(float), false);
    registered_.push_back({frame, kBytesOfFrame, reinterpret_cast<Address>(frame)});  // pinned by its allocation
    leat_picture_job job{};
    job.planes[0] = job.slot = frame;
    job.planes[1] = frame + std::uint64_t{kWidth} * kHeight;
    job.slot_bytes = kBytesOfFrame;
    job.strides[0] = job.strides[1] = kWidth;
    job.format = kNv12, job.width = kWidth, job.height = kHeight;
    job.scale_x = job.scale_y = static_cast<float>(kWidth) / static_cast<float>(side);
    job.window_width = side, job.window_height = side * 9 / 16;
    job.out = out.address;
    const leat_picture_target target{side, side, 3, kFloat32, LEAT_NCHW, LEAT_RESIZE_linear};
    std::uint64_t best_ns[2] = {UINT64_MAX, UINT64_MAX};
    for (int run = 0; run < 14; ++run) {  // the first of each is not counted
      info_.picture_source = run % 2 == 0 ? LEAT_PICTURE_IN_PLACE : LEAT_PICTURE_UPLOADED;
      stamp(0);
      pictures(target, {&job, 1});
      stamp(1);
      wait();
      if (run >= 2) best_ns[run % 2] = std::min(best_ns[run % 2], elapsed_ns());
    }
    info_.picture_source = best_ns[0] <= best_ns[1] ? LEAT_PICTURE_IN_PLACE : LEAT_PICTURE_UPLOADED;
  } catch (...) {
    release(out);
    host_release(frame);
    throw;
  }
  registered_.pop_back();
  release(out);
  host_release(frame);
}

}  // namespace leat::cuda
