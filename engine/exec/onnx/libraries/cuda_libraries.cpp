#include "engine/exec/onnx/libraries/cuda_libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace leat::exec {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProvider = "libonnxruntime_providers_cuda.so";
constexpr const char* kCudnn = "libcudnn.so.9";  // opened by the provider, not linked
constexpr std::uint64_t kMaxEntries = 4096, kMaxNames = 1u << 20;

template <class T>
bool read_at(std::ifstream& file, std::uint64_t at, T* out, std::uint64_t count = 1) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(count * sizeof(T))));
}

bool opens(const std::string& name) { return ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr; }

bool opens_in(const std::vector<std::string>& folders, const std::string& name) {
  std::error_code none;
  return opens(name) || std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
           return fs::exists(folder + "/" + name, none) && opens(folder + "/" + name);
         });
}

// Pieces of a list that is separated by ':'.
std::vector<std::string> pieces(const char* variable) {
  const char* const list = std::getenv(variable);
  std::vector<std::string> out;
  for (std::string rest = list != nullptr ? list : ""; !rest.empty();) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    out.push_back(rest.substr(0, colon));
    rest.erase(0, std::min(colon + 1, rest.size()));
  }
  return out;
}

// Of Pythons that nobody has activated: those in PATH, and where conda puts its own. Patterns for glob().
std::vector<std::string> python_roots() {
  std::vector<std::string> out;
  std::error_code none;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* const root = std::getenv(variable); root != nullptr && *root != '\0')
      out.push_back(std::string(root) + "/lib");
  for (const std::string& folder : pieces("PATH"))
    if (fs::path(folder).is_absolute() && fs::exists(folder + "/python3", none))
      out.push_back((fs::path(folder).parent_path() / "lib").string());
  std::vector<std::string> condas = {"/opt/conda"};
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    out.push_back(std::string(home) + "/.local/lib");
    for (const char* name : {"miniconda3", "anaconda3", "miniforge3", "mambaforge"})
      condas.push_back(std::string(home) + "/" + name);
  }
  for (const std::string& conda : condas) out.insert(out.end(), {conda + "/lib", conda + "/envs/*/lib"});
  return out;
}

// What cuDNN compiles kernels with while it runs; it is not linked against, and its absence is no reason to refuse.
std::string runtime_compiler(const std::set<std::string>& needed) {
  constexpr std::string_view kRuntime = "libcudart.so.";
  for (const std::string& name : needed)
    if (name.starts_with(kRuntime)) return "libnvrtc.so." + name.substr(kRuntime.size());
  return {};
}

}  // namespace

Result<std::vector<std::string>> needed_by(const std::string& library) {
  const Error no_library{library + ": is no shared library of this machine's kind"};
  std::ifstream file(library, std::ios::binary);
  Elf64_Ehdr head{};
  if (!read_at(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phnum > kMaxEntries)
    return no_library;
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  if (!read_at(file, head.e_phoff, parts.data(), parts.size())) return no_library;
  std::vector<Elf64_Dyn> dynamic;
  for (const Elf64_Phdr& p : parts) {
    if (p.p_type != PT_DYNAMIC) continue;
    dynamic.resize(std::min<std::uint64_t>(p.p_filesz / sizeof(Elf64_Dyn), kMaxEntries));
    if (!read_at(file, p.p_offset, dynamic.data(), dynamic.size())) return no_library;
  }
  std::uint64_t names_at = 0, names_bytes = 0;
  for (const Elf64_Dyn& d : dynamic) {
    if (d.d_tag == DT_STRSZ) names_bytes = std::min<std::uint64_t>(d.d_un.d_val, kMaxNames);
    if (d.d_tag != DT_STRTAB) continue;
    for (const Elf64_Phdr& p : parts)
      if (p.p_type == PT_LOAD && d.d_un.d_ptr >= p.p_vaddr && d.d_un.d_ptr < p.p_vaddr + p.p_filesz)
        names_at = d.d_un.d_ptr - p.p_vaddr + p.p_offset;
  }
  std::vector<char> names(names_bytes + 1);
  if (names_at == 0 || !read_at(file, names_at, names.data(), names_bytes)) return no_library;
  std::vector<std::string> out;
  for (const Elf64_Dyn& d : dynamic) {
    if (d.d_tag == DT_NULL) break;
    if (d.d_tag == DT_NEEDED && d.d_un.d_val < names_bytes) out.emplace_back(names.data() + d.d_un.d_val);
  }
  return out;
}

std::vector<std::string> cuda_library_folders() {
  std::vector<std::string> out;
  std::error_code none;
  const auto add = [&](const std::string& folder) {
    if (!folder.empty() && fs::is_directory(folder, none) && std::find(out.begin(), out.end(), folder) == out.end())
      out.push_back(folder);
  };
  for (const std::string& named : pieces("LEAT_CUDA_LIBRARIES")) add(named);
  std::vector<std::string> patterns = {"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/lib"};
  std::vector<std::string> roots = python_roots();
  roots.insert(roots.end(), {"/usr/lib", "/usr/local/lib"});
  for (const std::string& root : roots) {
    patterns.push_back(root);
    for (const char* packages : {"site-packages", "dist-packages"})
      patterns.push_back(root + "/python3*/" + packages + "/nvidia/*/lib");
  }
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i) add(found.gl_pathv[i]);
    ::globfree(&found);
  }
  return out;
}

Status load_cuda_libraries(const std::string& onnxruntime) {
  std::error_code none;
  const fs::path provider = fs::absolute(onnxruntime, none).parent_path() / kProvider;
  if (!fs::exists(provider, none))
    return Error{onnxruntime + " has no CUDA provider beside it (" + kProvider +
                 "); run tools/setup --gpu, or name a GPU release in ONNXRUNTIME_ROOT"};
  const auto needed = needed_by(provider.string());
  if (!needed.ok()) return Error{needed.error()};
  std::set<std::string> missing = {kCudnn};
  for (const std::string& name : *needed)
    if (name.starts_with("libcu") || name.starts_with("libnv")) missing.insert(name);
  const std::string compiler = runtime_compiler(missing);
  const std::vector<std::string> folders = cuda_library_folders();
  // One may need another: round by round, until a round brings nothing.
  for (bool any = true; any;) {
    any = false;
    for (auto name = missing.begin(); name != missing.end();) {
      const bool there = opens_in(folders, *name);
      any = any || there;
      name = there ? missing.erase(name) : std::next(name);
    }
  }
  if (!compiler.empty()) (void)opens_in(folders, compiler);
  if (missing.empty()) return Done{};
  std::string list;
  for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
  const bool driver = missing.contains("libcuda.so.1");
  return Error{"the CUDA provider's libraries are missing: " + list +
               (driver ? "; libcuda.so.1 comes with NVIDIA's driver: install it"
                       : "; install CUDA and cuDNN of that release, or name their folders in LEAT_CUDA_LIBRARIES")};
}

}  // namespace leat::exec
