// The `emulated` executor: takes the time that a profile gives (or none) asleep, and answers a checksum of its input.
//
// extra: latency_ns=T1,T2,... (a batch of 1, 2, ... rows; beyond the list in proportion to the last), or with a profile
// as model_path: class=NAME (default: the profile's first) and share=N (default 1). A stage without a profile:
// bytes_in=N, bytes_out=N, what features of an item take before and behind it.
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/exec/checksum.h"
#include "engine/exec/registry.h"
#include "planner/io/profile_io.h"
#include "planner/profile_table.h"
#include "shm/src/rings/clock.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kAnswerBytes = 8;

// A name of its own (onnx_session.h says why).
struct Emulation {
  std::vector<std::int64_t> latency_ns;  // [rows - 1]
  std::uint64_t bytes_in = 0;            // a row; 0: raw items
  std::uint64_t bytes_out = 8;
  bool last = true;
};

Emulation& of(leat_session* handle) { return *reinterpret_cast<Emulation*>(handle); }

void sleep_until(std::int64_t deadline_ns) noexcept {
  const timespec t{.tv_sec = deadline_ns / 1'000'000'000, .tv_nsec = deadline_ns % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

std::string read_latencies(const std::string& list, std::vector<std::int64_t>* out) {
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || (next != end && *next != ','))
      return "emulated: latency_ns=" + list + " is not a list of times in nanoseconds, separated by commas";
    out->push_back(value);
    at = next == end ? end : next + 1;
  }
  return {};
}

std::string read_profile_into(const leat_session_options& o, Emulation* session) {
  const auto profile = planner::read_profile(o.model_path);
  if (!profile) return profile.error();
  const std::uint32_t end = std::min(o.end_block, profile->blocks);
  if (o.first_block >= end)
    return std::string(o.model_path) + ": has " + std::to_string(profile->blocks) +
           " blocks; a stage needs at least one of them";
  std::string wanted = extra_value(o.extra, "class");
  const std::string share_text = extra_value(o.extra, "share");
  const std::uint32_t share =
      share_text.empty() ? 1 : static_cast<std::uint32_t>(std::strtoul(share_text.c_str(), nullptr, 10));
  if (wanted.empty() && !profile->rows.empty()) wanted = profile->rows[0].partition_class;
  const planner::ProfileTable table(*profile);
  for (std::uint32_t b = 1; b <= table.largest_batch(wanted, share); ++b)
    session->latency_ns.push_back(table.p50_ns(wanted, share, b, o.first_block, end));
  if (session->latency_ns.empty())
    return std::string(o.model_path) + ": has no rows of class '" + wanted + "' and share " + std::to_string(share) +
           "; profile it, or name another class";
  if (o.first_block > 0) session->bytes_in = static_cast<std::uint64_t>(profile->boundary_bytes[o.first_block - 1]);
  session->last = end == profile->blocks;
  if (!session->last) session->bytes_out = static_cast<std::uint64_t>(profile->boundary_bytes[end - 1]);
  if ((o.first_block > 0 && session->bytes_in == 0) || session->bytes_out == 0)
    return std::string(o.model_path) + ": a boundary between its blocks has no bytes; profile it again";
  return {};
}

std::string read_list_into(const leat_session_options& o, Emulation* session) {
  const auto number = [&](const char* key) { return std::strtoull(extra_value(o.extra, key).c_str(), nullptr, 10); };
  session->bytes_in = number("bytes_in");
  if (o.first_block > 0 && session->bytes_in == 0)
    return "emulated: a stage that is not the first needs bytes_in, or a profile as its model";
  if (const std::uint64_t bytes = number("bytes_out"); bytes > 0) {
    session->bytes_out = bytes;
    session->last = false;
  }
  return read_latencies(extra_value(o.extra, "latency_ns"), &session->latency_ns);
}

int open(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes) {
  try {
    auto session = std::make_unique<Emulation>();
    const bool profiled = options->model_path != nullptr && *options->model_path != '\0';
    const std::string problem =
        profiled ? read_profile_into(*options, session.get()) : read_list_into(*options, session.get());
    if (!problem.empty()) return executor_error(error, error_bytes, problem);
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // wake when told, not up to 50 us later
    *out = reinterpret_cast<leat_session*>(session.release());
    return 0;
  } catch (const std::exception& e) {
    return executor_error(error, error_bytes, std::string("emulated: ") + e.what());
  }
}

void close(leat_session* handle) { delete &of(handle); }

leat_tensor bytes_tensor(std::uint32_t batch, std::uint64_t bytes) noexcept {
  leat_tensor t{};
  t.shape[0] = batch, t.shape[1] = static_cast<std::int64_t>(bytes);
  t.rank = 2;
  t.bytes = batch * bytes;
  t.dtype = LEAT_U8;
  return t;
}

int describe(leat_session* handle, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count,
             leat_tensor* outputs, std::uint32_t* output_count, char* error, size_t error_bytes) {
  if (*input_count < 1 || *output_count < 1)
    return executor_error(error, error_bytes, "emulated: describe() needs room for one input and one output");
  inputs[0] = bytes_tensor(batch, of(handle).bytes_in);
  outputs[0] = bytes_tensor(batch, of(handle).bytes_out);
  *input_count = *output_count = 1;
  return 0;
}

std::int64_t latency_of(const Emulation& s, std::uint32_t batch) noexcept {
  if (s.latency_ns.empty()) return 0;
  const std::size_t known = s.latency_ns.size();
  return batch <= known ? s.latency_ns[batch - 1] : s.latency_ns.back() / static_cast<std::int64_t>(known) * batch;
}

int run(leat_session* handle, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t input_count,
        leat_tensor* outputs, std::uint32_t output_count, char* error, size_t error_bytes) {
  const Emulation& session = of(handle);
  const std::int64_t latency_ns = latency_of(session, batch), start_ns = latency_ns > 0 ? shm::monotonic_ns() : 0;
  const bool raw = session.bytes_in == 0;
  if (output_count != 1 || input_count != (raw ? batch : 1))
    return executor_error(error, error_bytes, "emulated: run() takes one input an item and one output");
  if (outputs[0].bytes < batch * session.bytes_out)
    return executor_error(error, error_bytes, "emulated: the output has too little room");
  for (std::uint32_t row = 0; row < batch; ++row) {
    const auto* in = static_cast<const std::byte*>(inputs[raw ? row : 0].data) + (raw ? 0 : row * session.bytes_in);
    const std::uint64_t sum = checksum(in, raw ? inputs[row].bytes : session.bytes_in);
    auto* at = static_cast<std::byte*>(outputs[0].data) + row * session.bytes_out;
    if (session.last) {
      std::memcpy(at, &sum, kAnswerBytes);
    } else {
      fill_from(sum, at, session.bytes_out);
    }
  }
  if (latency_ns > 0) sleep_until(start_ns + latency_ns);
  return 0;
}

}  // namespace

const leat_executor* emulated_executor() {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "emulated", open, close, describe, run, nullptr};
  return &kExecutor;
}

}  // namespace leat::exec
