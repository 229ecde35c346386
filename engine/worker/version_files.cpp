// The worker's part in serving one version of each model: the files that leatd opened, and what lies at their paths
// now.
#include <cstdio>
#include <memory>
#include <utility>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/worker/worker.h"

namespace leat::worker {
namespace {

// For who opens the model himself.
Status by_path(const exec::PinnedModel& model, const std::string& executor) {
  for (const exec::PinnedFile& f : model.files)
    if (!f.lies_at_its_path())
      return Error{f.path() + ": has been replaced since leatd started, and executor '" + executor +
                   "' opens what lies there; put the old file back, or restart leatd to serve the new one"};
  return model.unchanged();
}

}  // namespace

Status Worker::receive_files() {
  for (ModuleSetup& m : setup_.modules) {
    for (exec::ModelFile& f : m.files) {
      if (auto status = control_.wait_for_message(); !status) return status;
      const auto type = type_of(control_.packet);
      if (!type.ok() || *type != ControlType::file || control_.descriptors.size() != 1)
        return Error{"the setup came without its models; install leatd and leat-worker of one release"};
      f.fd = std::make_shared<shm::Fd>(std::move(control_.descriptors[0]));
    }
  }
  return Done{};
}

// Before anything but leatd's own code runs, and before there are few descriptors: each file is opened anew, as the
// user that this process is now, and leatd's descriptors, which may be open for another, are given up.
Status Worker::pin_all() {
  for (std::uint32_t i = 0; i < setup_.modules.size(); ++i) {
    if (setup_.modules[i].files.empty()) continue;
    const auto model = exec::pin_model(setup_.modules[i].files);
    if (model.ok()) continue;
    (void)control_.send(encode_opening(i));  // whose error it is
    return Error{model.error()};
  }
  for (ModuleSetup& m : setup_.modules)
    for (exec::ModelFile& f : m.files) f.fd.reset();
  return Done{};
}

// The version that leatd started with, or nothing. An executor of another kind opens its model by its path, so that is
// asked before and behind.
Status Worker::pin(const ModuleSetup& m) {
  if (m.files.empty()) return Done{};
  auto model = exec::pin_model(m.files);
  if (!model.ok()) return Error{model.error()};
  if (m.executor != "onnx") return by_path(**model, m.executor);
  for (const exec::PinnedFile& f : (*model)->files)
    if (!f.lies_at_its_path())
      std::fprintf(stderr,
                   "leat-worker: %s/%s: %s has been replaced since leatd started; serving on with the version of then; "
                   "restart leatd to serve the new one\n",
                   m.application.c_str(), m.name.c_str(), f.path().c_str());
  return Done{};
}

}  // namespace leat::worker
