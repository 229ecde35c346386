// Models in the words that KServe's and Triton's clients read: metadata, configuration, statistics, an index. Pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tools/base/json/json.h"
#include "tools/leat/gateway/serving/admission.h"
#include "tools/leat/gateway/serving/catalogue.h"

namespace leat::gateway {

[[nodiscard]] Json server_metadata(bool shared_memory);
// A request carries one item or a few (infer_request.h), each a frame of its own: Leat makes batches by itself.
[[nodiscard]] Json model_metadata(const Model& model);
// "parameters.metadata" is what Ultralytics' wrapper reads: a literal of Python.
[[nodiscard]] Json model_config(const Model& model, std::span<const std::string> class_names);
[[nodiscard]] Json model_statistics(const Model& model, const ModelCounts& counts);
[[nodiscard]] Json repository_index(const Catalogue& catalogue);
// "1", or the model's own version.
[[nodiscard]] bool is_version(const Model& model, std::string_view version);

}  // namespace leat::gateway
