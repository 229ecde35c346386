#include "engine/daemon/workers/models/model_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "engine/exec/model_files/external_data.h"
#include "engine/exec/model_files/sha256.h"
#include "engine/exec/spec_line.h"

namespace leat::daemon {
namespace {

using exec::ModelFile;

constexpr const char* kMove = "; move it beside the model and name it there";

constexpr std::int64_t kMaxKeysBytes = 4 << 20;  // of a file of characters that a worker names

// Who says which file it is: the configuration, or a worker, which may be in other hands.
enum class By : std::uint8_t { configuration, worker };

// No file: nothing that could be opened lies there.
Result<std::optional<ModelFile>> open_file(const std::string& path, const std::string& location,
                                           By by = By::configuration) {
  // A pipe would keep leatd waiting for its writer.
  const int follow = by == By::worker ? O_NOFOLLOW : 0;
  auto fd = std::make_shared<Fd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | follow));
  if (!*fd && (errno == EMFILE || errno == ENFILE))
    return Error{path + ": leatd has no file descriptors left; raise its limit (ulimit -n, LimitNOFILE)"};
  struct stat seen {};
  if (!*fd || fstat(fd->get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::optional<ModelFile>();
  if (by == By::worker && seen.st_size > kMaxKeysBytes) return std::optional<ModelFile>();
  auto sum = exec::sha256_of_file(fd->get());
  if (!sum) return Error{path + ": " + sum.error()};
  return std::optional(ModelFile{.path = path, .location = location, .sha256 = std::move(*sum), .fd = std::move(fd)});
}

bool within_its_folder(const std::filesystem::path& location) {
  return location.is_relative() && *location.lexically_normal().begin() != "..";
}

// The model and, where it is an ONNX file, what it keeps its weights in.
Result<std::vector<ModelFile>> files_of(const std::string& path, bool onnx) {
  std::vector<ModelFile> out;
  auto model = open_file(path, "");
  if (!model) return Error{model.error()};
  if (!*model) return out;
  out.push_back(std::move(**model));
  if (!onnx) return out;
  const auto folder = std::filesystem::path(path).parent_path();
  for (const std::string& location : exec::external_files(out[0].fd->get())) {
    if (!within_its_folder(location))
      return Error{path + ": keeps weights in '" + location + "', outside of its folder" + kMove};
    auto weights = open_file((folder / location).string(), location);
    if (!weights) return Error{weights.error()};
    if (!*weights)  // the runtime would look for it in the folder that it was started in
      return Error{path + ": keeps weights in '" + location + "', and there is no such file that can be read in " +
                   (folder.empty() ? "." : folder.string()) + "; copy it there too"};
    out.push_back(std::move(**weights));
  }
  return out;
}

// The first 64 bits of a hash.
std::uint64_t beginning(const std::string& sha256) {
  constexpr std::size_t kDigits = 16;
  return std::strtoull(sha256.substr(0, kDigits).c_str(), nullptr, kDigits);
}

// The file of characters that a module's answers are read by (`text ... keys=FILE`), where its words name one.
Status pin_keys(worker::ModuleSetup& module, By by) {
  const auto name = exec::SpecLine("postprocess", module.postprocess).text("keys");
  if (module.files.empty() || !name) return Done{};
  if (by == By::worker && !within_its_folder(*name))
    return Error{module.application + "/" + module.name +
                 ": its worker names a file outside of the model's folder; it is not read"};
  auto keys = open_file((std::filesystem::path(module.model_path).parent_path() / *name).string(), *name, by);
  if (!keys) return Error{keys.error()};
  if (*keys) module.files.push_back(std::move(**keys));
  return Done{};
}

}  // namespace

Result<std::string> sha256_of(const worker::ModuleSetup& module) {
  if (module.files.empty()) return std::string();
  if (module.files.size() == 1) return module.files[0].sha256;
  std::string lines;
  for (const ModelFile& f : module.files)
    lines +=
        f.sha256 + "  " + (f.location.empty() ? std::filesystem::path(f.path).filename().string() : f.location) + "\n";
  return exec::sha256_hex(lines);
}

Status keep_words(const worker::Ready& ready, worker::Setup& setup) {
  for (std::size_t m = 0; m < std::min(ready.recognised.size(), setup.modules.size()); ++m) {
    const exec::Recognised& known = ready.recognised[m];
    worker::ModuleSetup& module = setup.modules[m];
    if (module.preprocess.empty()) module.preprocess = known.preprocess.words;
    if (module.labels.empty() && !known.labels.words.empty()) module.labels = {known.labels.words};
    if (!module.postprocess.empty()) continue;
    module.postprocess = known.postprocess.words;
    if (auto status = pin_keys(module, By::worker); !status) {
      module.postprocess.clear();
      return status;
    }
  }
  return Done{};
}

Status pin_models(std::vector<worker::Setup>& setups, std::span<const worker::Setup> pinned) {
  std::map<std::string, std::vector<ModelFile>> opened;
  for (const worker::Setup& setup : pinned) {
    for (const worker::ModuleSetup& m : setup.modules) {
      std::vector<ModelFile> files = m.files;
      std::erase_if(files, [&](const ModelFile& f) {  // its file of characters, which pin_keys() opens
        const auto keys = exec::SpecLine("postprocess", m.postprocess).text("keys");
        return keys && f.location == *keys;
      });
      if (!files.empty()) opened.emplace((m.executor == "onnx" ? "1" : "0") + m.model_path, std::move(files));
    }
  }
  std::map<std::string, std::map<std::uint32_t, std::string>> hashes;  // [application][module]
  for (worker::Setup& setup : setups) {
    for (worker::ModuleSetup& m : setup.modules) {
      if (m.model_path.empty()) continue;
      const std::string key = (m.executor == "onnx" ? "1" : "0") + m.model_path;
      if (!opened.contains(key)) {
        auto files = files_of(m.model_path, m.executor == "onnx");
        if (!files) return Error{files.error()};
        opened.emplace(key, std::move(*files));
      }
      m.files = opened[key];
      if (auto status = pin_keys(m, By::configuration); !status) return status;
      auto sum = sha256_of(m);
      if (!sum) return Error{sum.error()};
      hashes[m.application][m.index] = std::move(*sum);
    }
  }
  for (worker::Setup& setup : setups) {
    for (worker::ModuleSetup& m : setup.modules) {
      const auto& of_all = hashes[m.application];
      std::string lines;
      for (const auto& [module, sum] : of_all)
        if (!sum.empty()) lines += sum + "\n";
      auto sum = of_all.size() == 1 ? Result<std::string>(of_all.begin()->second) : exec::sha256_hex(lines);
      if (!sum) return Error{sum.error()};
      m.version = lines.empty() ? 0 : beginning(*sum);
    }
  }
  return Done{};
}

}  // namespace leat::daemon
