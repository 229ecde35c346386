// A module as a worker runs it: pre-processing straight from the frame slots, an executor's session, post-processing
// straight into the result slots.
//
//   auto module = Module::open(spec);                      // control plane: loads the model, allocates everything
//   module->run(items, reports);                           // hot path: no allocation, no exception
//
// A route of several stages splits the executor's part: the first stage pre-processes and writes features, the last
// reads features and post-processes; `features` below are one dense row an item, in memory that both workers map.
// Ownership: a Module owns its session and buffers. Thread rule: one thread; different Modules are independent.
// Errors: open() says in one line what and what to do. run() gives each item a reason; error() is the last failed run's
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/exec/frame_view.h"
#include "engine/exec/onnx/graph_report.h"
#include "engine/exec/part.h"
#include "engine/exec/picture/sizes.h"
#include "engine/exec/recognise/recognise.h"
#include "leat/outcome.h"
#include "leat/result.hpp"
#include "leat/result_types.h"

namespace leat::exec {

class Device;

inline constexpr std::uint32_t kMaxRows = 64;  // rows of one batch

struct ModuleSpec {
  std::string name;               // for messages
  std::string executor = "onnx";  // a built-in ("onnx", "emulated"), an installed plug-in ("cuda"), or a plug-in's path
  std::string model_path;         // `onnx`: an ONNX file; `emulated`: a profile (docs/guide/profiles.md) or empty
  std::string as = {};      // `onnx`: the known model that it is (docs/reference/known-models.md); empty: nobody says
  std::string preprocess;   // preprocess.h's one line; empty: concluded from the model (`onnx`), or "raw"
  std::string postprocess;  // postprocess.h's one line; empty: concluded from the model (`onnx`), or "checksum"
  std::vector<std::string> labels;  // one entry a head, names separated by tabs; empty: as the model says
  std::uint32_t first_head = 0;     // what its first output is called in the labels it gives: below 255 with all others
  std::uint32_t batch_max = 1;      // rows, 1..kMaxRows
  std::uint32_t threads = 1;        // compute threads; the process is pinned already
  std::uint32_t first_block = 0, end_block = UINT32_MAX;  // of the model; UINT32_MAX: to its end
  std::vector<std::string>
      cuts;  // `onnx`: the tensors its blocks meet at (Profile::cuts); needed for a part of the model
  bool first_stage = true, last_stage = true;  // false: reads features; writes features
  std::uint32_t picture_width = 0,
                picture_height = 0;  // of the whole model's input: for `boxes` in a last stage that is not the first
  std::vector<std::int64_t> emulated_ns;  // `emulated` without a profile: time of a batch of i + 1 rows; empty: no time
  std::uint64_t emulated_in = 0,
                emulated_out = 0;  // `emulated` without a profile: bytes of an item's features; 0: none
  std::vector<std::pair<std::string, std::string>> extra;  // handed to the executor as key=value lines
  Device* device = nullptr;        // null: this host; else where executors run that can. It outlives the module
  bool host_features_out = false;  // on a device: what it writes for the next stage goes to host memory
};

// One item of a batch.
struct Item {
  FrameView frame;                // first stage only
  leat_result* result = nullptr;  // where the answer goes, last stage; and where the box comes from
  leat_part* parts = nullptr;     // this module's entries of the result's directory; null: no place for parts()
  std::int32_t detection = -1;    // >= 0: the item is result->detections[detection], and its labels go there
  std::uint32_t rows = 1;         // rows of the batch that it fills
};

struct ItemReport {
  Reason reason = Reason::none;  // none: done
  std::uint32_t fan_out = 0;     // detections written
  std::uint32_t squeezed = 0;    // the width in pixels that it would have needed, where it was given less (sizes.h)
  std::uint64_t pixel_bytes_copied =
      0;  // copies after the producer's write; the one pass from slot to model input is none
};

class Module {
 public:
  static Result<std::unique_ptr<Module>> open(const ModuleSpec& spec);
  virtual ~Module() = default;

  // Runs items (at most batch_max rows in all); reports[i] answers items[i]. An item whose own input is unusable fails
  // alone; false: the executor failed and so did every item.
  // features_in: null on the first stage; features_out: null on the last. Both are feature_bytes_*() a row, in the
  // device's memory where on_device() (but for host_features_out).
  virtual bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in = nullptr,
                   std::byte* features_out = nullptr) noexcept = 0;

  virtual std::uint64_t feature_bytes_in() const noexcept = 0;       // 0: this stage starts from frames
  virtual std::uint64_t feature_bytes_out() const noexcept = 0;      // 0: this stage ends with results
  virtual std::vector<PartSpec> parts() const = 0;                   // of the result's directory, that one item needs
  virtual std::vector<leat_tensor_shape> tensor_shapes() const = 0;  // what its frames must be; empty: pictures
  virtual std::vector<std::string> tensor_names() const = 0;         // the model's, of each of those
  // Where the size of its pictures varies: one for each cost class, smallest first (sizes.h). Items of one size run
  // together; a batch of several is run as several, one behind the other.
  virtual std::vector<Size> sizes() const = 0;
  // On a host: the next run lets go of the memory that larger ones, of all modules, took before it.
  virtual void give_back() noexcept = 0;
  virtual bool on_device() const noexcept = 0;
  virtual GraphReport graphs() const = 0;  // on a device: which batches run as graphs, of those that have run
  virtual std::string_view error() const noexcept = 0;
  // With the words that were concluded from the model where none were given; recognised() says from what.
  virtual const ModuleSpec& spec() const noexcept = 0;
  virtual const Recognised& recognised() const noexcept = 0;
};

}  // namespace leat::exec
