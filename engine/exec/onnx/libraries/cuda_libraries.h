// What ONNX Runtime's CUDA provider needs besides a driver: CUDA's and cuDNN's own libraries, which lie where a toolkit
// or Python's packages have put them. They are loaded here by their paths, before the provider asks for them by name,
// so that nobody has to set LD_LIBRARY_PATH, and before a worker's sandbox closes. Looked for in $LEAT_CUDA_LIBRARIES
// (folders, separated by ':'), by the loader itself, in CUDA's toolkits below /usr/local, and in Python's nvidia
// packages: of the environment that is active, of every Python in PATH, and of conda's where they are put by custom.
// Control plane; any thread; what is loaded stays.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"

namespace leat::exec {

// The shared libraries that a library was linked against (DT_NEEDED). Error: it is no ELF file of 64 bits.
Result<std::vector<std::string>> needed_by(const std::string& library);

// Folders that CUDA's libraries may lie in, in the order above; those that are there.
std::vector<std::string> cuda_library_folders();

// Loads all that the CUDA provider beside ONNX Runtime's library `onnxruntime` needs, the driver included, but not the
// provider: ONNX Runtime itself does that. Error: in one line what is missing, and what to do.
Status load_cuda_libraries(const std::string& onnxruntime);

}  // namespace leat::exec
