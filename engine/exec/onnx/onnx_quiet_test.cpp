// ONNX Runtime does what it is asked to and nothing else: no thread, file, socket or word on standard error beyond what
// a session needs, in a process of its own with a home of its own. Releases from 1.29 on carry telemetry, which the
// loader switches off before it loads them. And: what the CUDA provider misses is said in one line.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/exec/device.h"
#include "engine/exec/onnx/libraries/cuda_libraries.h"
#include "engine/exec/onnx/libraries/onnx_library.h"
#include "engine/exec/registry.h"
#include "leat/executor.h"

namespace leat::exec {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  std::size_t out = 0;
  std::error_code none;
  for (auto i = fs::recursive_directory_iterator(folder, none); i != fs::end(i); ++i) ++out;
  return out;
}
std::size_t threads() {
  std::size_t out = 0;
  for ([[maybe_unused]] const auto& t : fs::directory_iterator("/proc/self/task")) ++out;
  return out;
}
// Descriptors that are sockets, or files below `home`.
std::size_t sockets_and_files(const std::string& home) {
  std::size_t out = 0;
  std::error_code none;
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    const std::string to = fs::read_symlink(fd.path(), none).string();
    out += to.starts_with("socket:") || to.starts_with(home) ? 1 : 0;
  }
  return out;
}

// 0: nothing was seen.
int quiet_session(const std::string& home) {
  ::setenv("HOME", home.c_str(), 1);
  ::setenv("XDG_CACHE_HOME", (home + "/cache").c_str(), 1);
  ::setenv("TMPDIR", home.c_str(), 1);
  const std::size_t before = threads();
  const std::size_t inherited = sockets_and_files(home);
  const leat_executor* const onnx = *find_executor("onnx");
  const leat_session_options options{.model_path = LEAT_MODELS "/classify.onnx",
                                     .first_block = 0,
                                     .end_block = UINT32_MAX,
                                     .batch_max = 1,
                                     .threads = 1,
                                     .extra = ""};
  leat_session* session = nullptr;
  char error[512] = "";
  std::FILE* const said = std::tmpfile();
  const int standard_error = ::dup(STDERR_FILENO);
  (void)::dup2(::fileno(said), STDERR_FILENO);
  const int opened = onnx->open(&options, &session, error, sizeof error);
  (void)::dup2(standard_error, STDERR_FILENO);
  const bool words = std::ftell(said) != 0 || ::lseek(::fileno(said), 0, SEEK_END) != 0;
  ::close(standard_error);
  std::fclose(said);
  if (opened != 0) return std::fprintf(stderr, "%s\n", error), 1;
  const bool more_threads = threads() != before, more_sockets = sockets_and_files(home) != inherited;
  onnx->close(session);
  const bool files = entries(home) != 0;
  if (more_threads || more_sockets || files || words)
    std::fprintf(stderr, "threads %d, sockets %d, files %d, words %d\n", more_threads, more_sockets, files, words);
  return more_threads ? 2 : more_sockets ? 3 : files ? 4 : words ? 5 : 0;
}

TEST(OnnxRuntime, SessionLeavesNoThreadNoSocketNoFileAndNoWord) {
  const std::string home = fs::temp_directory_path() / ("leat-quiet-" + std::to_string(::getpid()));
  fs::create_directory(home);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(quiet_session(home));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(entries(home), 0U);
  fs::remove_all(home);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CudaLibraries, NeedsOfALibraryAreRead) {
  ASSERT_TRUE(onnx_library().ok()) << onnx_library().error();
  const auto needed = needed_by(onnx_library()->path);
  ASSERT_TRUE(needed.ok()) << needed.error();
  EXPECT_NE(std::find(needed->begin(), needed->end(), "libc.so.6"), needed->end());
}

// In environments that nobody has activated: one whose Python is in PATH, and one of conda's in the home folder.
TEST(CudaLibraries, AreLookedForInEnvironmentsThatNoVariableNames) {
  const std::string home = fs::temp_directory_path() / ("leat-home-" + std::to_string(::getpid()));
  const std::string in_path = home + "/venv/lib/python3.11/site-packages/nvidia/cublas/lib",
                    in_conda = home + "/miniconda3/envs/vision/lib/python3.12/site-packages/nvidia/cudnn/lib";
  for (const std::string& folder : {in_path, in_conda, home + "/venv/bin"}) fs::create_directories(folder);
  std::ofstream(home + "/venv/bin/python3") << "";
  const pid_t child = ::fork();
  if (child == 0) {
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX", "LEAT_CUDA_LIBRARIES"}) ::unsetenv(variable);
    ::setenv("HOME", home.c_str(), 1);
    ::setenv("PATH", ("/nonexistent:" + home + "/venv/bin").c_str(), 1);
    const auto folders = cuda_library_folders();
    const auto has = [&](const std::string& f) {
      return std::find(folders.begin(), folders.end(), f) != folders.end();
    };
    ::_exit(has(in_path) && has(in_conda) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  fs::remove_all(home);
  EXPECT_EQ(status, 0);
}

TEST(CudaLibraries, WhatIsNoLibraryIsOneLine) {
  const std::string folder = fs::temp_directory_path() / ("leat-cuda-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const std::string provider = folder + "/libonnxruntime_providers_cuda.so";
  const auto said = [&] {
    const Status status = load_cuda_libraries(folder + "/libonnxruntime.so.1");
    return status.ok() ? std::string() : status.error();
  };
  EXPECT_NE(said().find("tools/setup --gpu"), std::string::npos) << said();
  for (const std::string& content :
       {std::string(), std::string("no library"), std::string("\177ELF\2\1\1") + std::string(200, '\xff')}) {
    std::ofstream(provider, std::ios::binary) << content;
    EXPECT_NE(said().find("is no shared library"), std::string::npos) << said();
    EXPECT_EQ(said().find('\n'), std::string::npos);
  }
  fs::remove_all(folder);
}

// The provider itself, as far as a driver without a device lets it come: its libraries load, the session is refused,
// and why is one line. In a process of its own, where a session on the host then serves as ever.
TEST(CudaProvider, WithoutADeviceIsRefusedInOneLine) {
  constexpr const char* kStub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  ASSERT_TRUE(onnx_library().ok()) << onnx_library().error();
  const fs::path provider = fs::path(onnx_library()->path).parent_path() / "libonnxruntime_providers_cuda.so";
  if (!fs::exists(provider)) GTEST_SKIP() << "this ONNX Runtime has no CUDA provider (tools/setup --gpu)";
  if (!fs::exists(kStub)) GTEST_SKIP() << "there is no toolkit with a stub of the driver";
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::dlopen(kStub, RTLD_NOW | RTLD_GLOBAL) == nullptr) ::_exit(1);  // it names itself libcuda.so.1
    leat_device_api api{};
    api.info = [](leat_device*, leat_device_info* out) {
      *out = {};
      out->has_provider = 1;
      out->stream = out;
    };
    char error[512] = "", unused[512] = "";
    leat_session* session = nullptr;
    leat_session_options options{.model_path = LEAT_MODELS "/classify.onnx",
                                 .first_block = 0,
                                 .end_block = UINT32_MAX,
                                 .batch_max = 2,
                                 .threads = 1,
                                 .extra = "fixed_buffers=1\n",
                                 .device_api = &api,
                                 .device = reinterpret_cast<leat_device*>(pipe)};
    const bool refused = onnx_executor()->open(&options, &session, error, sizeof error) != 0;
    // TensorRT's libraries are in no package: that its provider was asked for is seen by who refuses.
    options.extra = "fixed_buffers=1\nprovider=tensorrt\n";
    char other[512] = "";
    if (onnx_executor()->open(&options, &session, other, sizeof other) == 0 || std::strchr(other, '\n') != nullptr ||
        std::strstr(other, "ensor") == nullptr)
      ::_exit(3);
    options.device_api = nullptr, options.device = nullptr;
    const bool here = onnx_executor()->open(&options, &session, unused, sizeof unused) == 0;
    (void)!::write(pipe[1], error, std::strlen(error));
    ::_exit(refused && here ? 0 : 2);
  }
  ::close(pipe[1]);
  std::string said(512, '\0');
  const ssize_t got = ::read(pipe[0], said.data(), said.size());
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " " << said;
  EXPECT_NE(said.find("classify.onnx: "), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  std::printf("%s\n", said.c_str());
}

TEST(CudaProvider, OtherWordsThanCudaAndTensorrtAreRefused) {
  ASSERT_TRUE(onnx_library().ok()) << onnx_library().error();
  leat_device_api api{};
  api.info = [](leat_device*, leat_device_info* out) { *out = {}; };
  char error[512] = "";
  leat_session* session = nullptr;
  int handle = 0;
  const leat_session_options options{.model_path = LEAT_MODELS "/classify.onnx",
                                     .first_block = 0,
                                     .end_block = UINT32_MAX,
                                     .batch_max = 1,
                                     .threads = 1,
                                     .extra = "provider=rocm\n",
                                     .device_api = &api,
                                     .device = reinterpret_cast<leat_device*>(&handle)};
  ASSERT_NE(onnx_executor()->open(&options, &session, error, sizeof error), 0);
  EXPECT_NE(std::string(error).find("provider=rocm is not known; write one of cuda, tensorrt"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace leat::exec
