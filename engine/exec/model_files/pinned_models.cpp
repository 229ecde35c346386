#include "engine/exec/model_files/pinned_models.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "engine/exec/model_files/sha256.h"

namespace leat::exec {
namespace {

std::map<std::string, PinnedModel>& pinned() {
  static std::map<std::string, PinnedModel> models;
  return models;
}

bool same_times(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

std::string shortened(const std::string& sha256) { return sha256.substr(0, 12); }

Error trouble(const std::string& path, const std::string& what) { return Error{path + ": " + what}; }

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
MappedFile::~MappedFile() {
  if (bytes_ != 0) (void)munmap(const_cast<void*>(data_), bytes_);
}

Result<PinnedFile> PinnedFile::open(const ModelFile& file) {
  std::string other;  // what is there instead
  for (const std::string& from : {"/proc/self/fd/" + std::to_string(file.fd->get()), file.path}) {
    Fd fd(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && (errno == EMFILE || errno == ENFILE))
      return trouble(file.path, "no file descriptor is left to open it; raise the limit (ulimit -n, LimitNOFILE)");
    struct stat seen {};
    if (!fd || fstat(fd.get(), &seen) != 0) {
      if (other.empty() && errno == EACCES)
        return trouble(file.path, "cannot be read: " + std::string(std::strerror(errno)) +
                                      "; let the user that the workers run as read it");
      continue;
    }
    auto sum = sha256_of_file(fd.get());
    if (!sum) return trouble(file.path, sum.error());
    if (*sum == file.sha256) return PinnedFile(file, std::move(fd), seen);
    other = std::move(*sum);
  }
  return trouble(file.path, "has been written over since leatd started: it was sha256 " + shortened(file.sha256) +
                                (other.empty() ? " and cannot be opened now" : " and is " + shortened(other)) +
                                "; put the old file back, or restart leatd to serve the new one");
}

Result<MappedFile> PinnedFile::map() const {
  const auto bytes = static_cast<std::size_t>(seen_.st_size);
  if (bytes == 0) return MappedFile("", 0);
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  if (data == MAP_FAILED) return trouble(path_, std::string("cannot be mapped: ") + std::strerror(errno));
  return MappedFile(data, bytes);
}

Status PinnedFile::unchanged() const {
  struct stat now {};
  if (fstat(fd_.get(), &now) == 0 && same_times(now, seen_)) return Done{};
  // A rename touches them too.
  if (const auto sum = sha256_of_file(fd_.get()); sum.ok() && *sum == sha256_) return Done{};
  return trouble(path_, "is being written over; put the old file back, or restart leatd to serve the new one");
}

bool PinnedFile::lies_at_its_path() const {
  const Fd there(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat seen {};
  if (!there || fstat(there.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return false;
  if (seen.st_dev == seen_.st_dev && seen.st_ino == seen_.st_ino) return true;
  const auto sum = sha256_of_file(there.get());
  return sum.ok() && *sum == sha256_;
}

Status PinnedModel::unchanged() const {
  for (const PinnedFile& f : files)
    if (auto status = f.unchanged(); !status) return status;
  return Done{};
}

Result<const PinnedModel*> pin_model(const std::vector<ModelFile>& files) {
  const std::string& path = files.at(0).path;
  const PinnedModel* const known = find_pinned(path);
  std::vector<PinnedFile> opened;
  for (const ModelFile& f : files) {
    const auto it = [&](const PinnedFile& p) { return p.path() == f.path; };
    if (known != nullptr && std::any_of(known->files.begin(), known->files.end(), it)) continue;
    auto file = PinnedFile::open(f);
    if (!file) return Error{file.error()};
    opened.push_back(std::move(*file));
  }
  PinnedModel& model = pinned()[path];
  std::move(opened.begin(), opened.end(), std::back_inserter(model.files));
  return &model;
}

const PinnedModel* find_pinned(const std::string& path) noexcept {
  const auto at = pinned().find(path);
  return at == pinned().end() ? nullptr : &at->second;
}

std::string pinned_path(const std::string& path) {
  for (const auto& [name, model] : pinned())
    for (const PinnedFile& f : model.files)
      if (f.path() == path) return "/proc/self/fd/" + std::to_string(f.fd());
  return path;
}

}  // namespace leat::exec
