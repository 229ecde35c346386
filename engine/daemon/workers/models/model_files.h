// The versions that this leatd serves: every model's files, opened and hashed once before a worker starts. Workers get
// the descriptors and verify what they load by these hashes (engine/exec/model_files/pinned_models.h), so that one that
// starts later serves the same bytes, or says that they are gone. Control thread. Errors: one line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"

namespace leat::daemon {

// Fills in ModuleSetup::files and version. What is no file that can be opened (the name of a plug-in's model, a folder)
// has none: whoever opens it says what is wrong.
// pinned: where the files of a model have been opened before, which are taken as they were then.
Status pin_models(std::vector<worker::Setup>& setups, std::span<const worker::Setup> pinned = {});

// What its models, and the files beside them, said to a worker once holds for all later starts, whatever those files
// say by then. A worker may be in other hands: a file of characters that it names is opened only in the model's folder,
// where it is no link and is small. Errors: it names another; its words are not kept.
Status keep_words(const worker::Ready& ready, worker::Setup& setup);

// Of a module: sha256sum's word for its model, or, where it has files of weights, for sha256sum's lines of them all,
// with the names that the model has for them. Empty: it has no files.
Result<std::string> sha256_of(const worker::ModuleSetup& module);

}  // namespace leat::daemon
