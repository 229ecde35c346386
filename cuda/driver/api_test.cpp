// Our declarations against NVIDIA's header: values, sizes, and the symbol each plain name stands for.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "cuda/driver/driver.h"

namespace leat::cuda {
namespace {

static_assert(kOutOfMemory == +CUDA_ERROR_OUT_OF_MEMORY && kNoDevice == +CUDA_ERROR_NO_DEVICE);
static_assert(kEccUncorrectable == +CUDA_ERROR_ECC_UNCORRECTABLE && kIllegalAddress == +CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kHostMemoryAlreadyRegistered == +CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(kHardwareStackError == +CUDA_ERROR_HARDWARE_STACK_ERROR &&
              kIllegalInstruction == +CUDA_ERROR_ILLEGAL_INSTRUCTION);
static_assert(kMisalignedAddress == +CUDA_ERROR_MISALIGNED_ADDRESS &&
              kInvalidAddressSpace == +CUDA_ERROR_INVALID_ADDRESS_SPACE);
static_assert(kInvalidPc == +CUDA_ERROR_INVALID_PC && kLaunchFailed == +CUDA_ERROR_LAUNCH_FAILED);
static_assert(kNvlinkUncorrectable == +CUDA_ERROR_NVLINK_UNCORRECTABLE && kLaunchTimeout == +CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(kAssert == +CUDA_ERROR_ASSERT && kUnknown == +CUDA_ERROR_UNKNOWN);
static_assert(kInvalidImage == +CUDA_ERROR_INVALID_IMAGE);
#if CUDA_VERSION >= 13000
static_assert(kContained == +CUDA_ERROR_CONTAINED && kTensorMemoryLeak == +CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
static_assert(kNotSupported == +CUDA_ERROR_NOT_SUPPORTED && kInvalidDevice == +CUDA_ERROR_INVALID_DEVICE);
static_assert(kMpsConnectionFailed == +CUDA_ERROR_MPS_CONNECTION_FAILED &&
              kMpsRpcFailure == +CUDA_ERROR_MPS_RPC_FAILURE);
static_assert(kMpsServerNotReady == +CUDA_ERROR_MPS_SERVER_NOT_READY);
static_assert(kMpsMaxClientsReached == +CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
static_assert(kMpsClientTerminated == +CUDA_ERROR_MPS_CLIENT_TERMINATED);
static_assert(kMultiprocessors == +CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kVirtualMemory == +CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(kDescriptorHandles == +CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
static_assert(kReadOnlyRegistration == +CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
static_assert(kBlockingSync == +CU_CTX_SCHED_BLOCKING_SYNC && kNonBlockingStream == +CU_STREAM_NON_BLOCKING);
static_assert(kEventBlocking == +CU_EVENT_BLOCKING_SYNC && kEventNoTiming == +CU_EVENT_DISABLE_TIMING);
static_assert(kRegisterPortable == +CU_MEMHOSTREGISTER_PORTABLE && kRegisterDeviceMap == +CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(kRegisterPortable == +CU_MEMHOSTALLOC_PORTABLE && kRegisterDeviceMap == +CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kRegisterReadOnly == +CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(kPinnedAllocation == +CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(kFileDescriptor == +CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(kDeviceLocation == +CU_MEM_LOCATION_TYPE_DEVICE && kReadWrite == +CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kRecommendedGranularity == +CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp) && sizeof(Uuid) == sizeof(CUuuid));
static_assert(offsetof(AllocationProperties, handle_types) == offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(sizeof(Address) == sizeof(CUdeviceptr) && sizeof(Handle) == sizeof(CUmemGenericAllocationHandle));

static_assert(kCaptureUnsupported == +CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(kCaptureInvalidated == +CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(kCaptureOfThread == +CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

#define LEAT_TEXT(name) LEAT_TEXT_OF(name)
#define LEAT_TEXT_OF(name) #name

// cuda.h maps a plain name to the version it declares: those are what we look up.
TEST(CudaApi, NamesAreTheHeadersVersions) {
  EXPECT_STREQ(LEAT_TEXT(cuDeviceTotalMem), "cuDeviceTotalMem_v2");
  EXPECT_STREQ(LEAT_TEXT(cuStreamDestroy), "cuStreamDestroy_v2");
  EXPECT_STREQ(LEAT_TEXT(cuEventDestroy), "cuEventDestroy_v2");
  EXPECT_STREQ(LEAT_TEXT(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease_v2");
  EXPECT_STREQ(LEAT_TEXT(cuDevicePrimaryCtxSetFlags), "cuDevicePrimaryCtxSetFlags_v2");
  EXPECT_STREQ(LEAT_TEXT(cuMemHostRegister), "cuMemHostRegister_v2");
  EXPECT_STREQ(LEAT_TEXT(cuMemHostGetDevicePointer), "cuMemHostGetDevicePointer_v2");
  EXPECT_STREQ(LEAT_TEXT(cuStreamBeginCapture), "cuStreamBeginCapture_v2");
  EXPECT_STREQ(LEAT_TEXT(cuMemGetInfo), "cuMemGetInfo_v2");
  for (const char* plain : {LEAT_TEXT(cuMemcpyAsync), LEAT_TEXT(cuMemsetD8Async), LEAT_TEXT(cuLaunchHostFunc),
                            LEAT_TEXT(cuLaunchKernel), LEAT_TEXT(cuStreamCreate), LEAT_TEXT(cuEventRecord),
                            LEAT_TEXT(cuStreamEndCapture), LEAT_TEXT(cuGraphInstantiateWithFlags),
                            LEAT_TEXT(cuGraphLaunch), LEAT_TEXT(cuGraphExecDestroy), LEAT_TEXT(cuGraphDestroy)})
    EXPECT_EQ(std::string(plain).find('_'), std::string::npos) << plain;
}

}  // namespace
}  // namespace leat::cuda
