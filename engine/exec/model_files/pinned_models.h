// Models that are read as they were when leatd opened them, whatever lies at their paths by now: one version serves,
// however often a worker starts. A worker pins what it was sent before it opens anything; whoever reads a model asks
// here first. A process that pins nothing (`leat profile`, tests) reads what lies at the path.
//
//   pin_model(path, files)   verifies each file by its SHA-256
//   find_pinned(path)        nullptr: not pinned
//   pinned_path(path)        what to open in place of `path`
//
// Ownership: what is pinned stays so until the process ends. Thread rule: pin_model() before the others, and on one
// thread; those from any. Errors: one line that begins with the file's path.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::exec {

// What leatd knows of one file of a model.
struct ModelFile {
  std::string path;
  std::string location;  // of weights: as the model names them; of characters: as keys= does; empty: the model itself
  std::string sha256;
  std::shared_ptr<const Fd> fd;  // open for reading; what lies at the path may be another file by now
};

// Its bytes, mapped; they may change while this lives, if somebody writes into the file: ask unchanged() behind.
class MappedFile {
 public:
  MappedFile(const void* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  [[nodiscard]] std::string_view bytes() const noexcept { return {static_cast<const char*>(data_), bytes_}; }

 private:
  const void* data_;
  std::size_t bytes_;
};

class PinnedFile {
 public:
  // Verified: the bytes behind the descriptor, or else those at the path, are those of leatd's start. The descriptor is
  // opened anew, as the user this process is now, so that its own is nobody else's.
  static Result<PinnedFile> open(const ModelFile& file);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& location() const noexcept { return location_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] Result<MappedFile> map() const;
  [[nodiscard]] Status unchanged() const;       // since it was verified
  [[nodiscard]] bool lies_at_its_path() const;  // it, or a file of the same bytes

 private:
  PinnedFile(const ModelFile& file, Fd fd, const struct stat& seen)
      : path_(file.path), location_(file.location), sha256_(file.sha256), fd_(std::move(fd)), seen_(seen) {}
  std::string path_, location_, sha256_;
  Fd fd_;
  struct stat seen_;  // when it was verified
};

struct PinnedModel {
  std::vector<PinnedFile> files;  // the model, then what belongs to it
  [[nodiscard]] Status unchanged() const;
};

// files: the model itself first. What is pinned already is left as it is.
Result<const PinnedModel*> pin_model(const std::vector<ModelFile>& files);
const PinnedModel* find_pinned(const std::string& path) noexcept;
std::string pinned_path(const std::string& path);  // of any of their files

}  // namespace leat::exec
