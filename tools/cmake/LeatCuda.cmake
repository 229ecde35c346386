# leat_nvcc: the compiler of a CUDA toolkit, where there is one that is new enough. Drivers are opened at run time, so only
# the kernels and what measures GPUs (bench/gpu) need it.
set(LEAT_CUDA AUTO CACHE STRING "AUTO: build the probe and the kernels where a toolkit is found; ON: insist; OFF: never")
if(NOT LEAT_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12.5 QUIET)
endif()
if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
  set(leat_nvcc ${CUDAToolkit_NVCC_EXECUTABLE})
  set(CMAKE_CUDA_COMPILER ${leat_nvcc})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90) # the last also as PTX, for what comes after
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17) # all that CMake 3.25 knows for nvcc; the few .cu files need no more
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  message(STATUS "cuda: toolkit ${CUDAToolkit_VERSION}")
elseif(LEAT_CUDA STREQUAL "ON")
  message(FATAL_ERROR "cuda: no CUDA toolkit 12.5 or newer was found; set CUDAToolkit_ROOT, or LEAT_CUDA=OFF")
else()
  message(STATUS "cuda: no toolkit 12.5 or newer (CUDAToolkit_ROOT names one): no probe, and a device plug-in without kernels")
endif()
