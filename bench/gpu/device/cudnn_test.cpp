// Our own declarations of cuDNN against the installed header, at compile time. Built only where the header is found.
#include "bench/gpu/device/cudnn.h"

#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace leat::probe {
namespace {

static_assert(CUDNN_STATUS_SUCCESS == cudnn::kSuccess);
static_assert(CUDNN_DATA_FLOAT == cudnn::kFloat && CUDNN_DATA_HALF == cudnn::kHalf);
static_assert(CUDNN_TENSOR_NCHW == cudnn::kNchw && CUDNN_TENSOR_NHWC == cudnn::kNhwc);
static_assert(CUDNN_CROSS_CORRELATION == cudnn::kCrossCorrelation);
static_assert(CUDNN_ACTIVATION_RELU == cudnn::kRelu && CUDNN_NOT_PROPAGATE_NAN == cudnn::kNotPropagateNan);
static_assert(CUDNN_DEFAULT_MATH == cudnn::kDefaultMath && CUDNN_TENSOR_OP_MATH == cudnn::kTensorOpMath &&
              CUDNN_FMA_MATH == cudnn::kFmaMath);
static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == sizeof(cudnn::AlgorithmPerf));
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) == offsetof(cudnn::AlgorithmPerf, memory));
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, mathType) == offsetof(cudnn::AlgorithmPerf, math));

TEST(Cudnn, MajorVersionIsTheOneDeclared) { EXPECT_EQ(CUDNN_MAJOR, 9); }

}  // namespace
}  // namespace leat::probe
