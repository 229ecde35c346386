// What every executor must do, whatever it runs: parameterised tests over the C ABI. A test program instantiates
// ExecutorConformance with its executors; host memory here, device memory by the functions of ConformanceCase.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/exec/registry.h"
#include "leat/executor.h"

namespace leat::exec {

struct ConformanceCase {
  std::string executor, model_path, extra;
  bool exact_across_batches = true;  // a row's answer may not depend, bit for bit, on the batch it was run in
  std::string broken_path;           // a file that is no model
};

class ExecutorConformance : public testing::TestWithParam<ConformanceCase> {
 protected:
  static constexpr std::uint32_t kBatchMax = 5, kRoom = 16;
  static constexpr std::size_t kRawBytes = 1000, kGuard = 64;
  static constexpr std::uint8_t kGuardByte = 0xa5;

  struct Session {
    const leat_executor* executor = nullptr;
    leat_session* session = nullptr;
    ~Session() {
      if (session != nullptr) executor->close(session);
    }
  };
  void open(Session* s) {
    auto found = find_executor(GetParam().executor);
    ASSERT_TRUE(found.ok()) << found.error();
    s->executor = *found;
    const leat_session_options options{GetParam().model_path.c_str(), 0, UINT32_MAX, kBatchMax, 1,
                                       GetParam().extra.c_str()};
    char error[256] = "";
    ASSERT_EQ(s->executor->open(&options, &s->session, error, sizeof error), 0) << error;
  }

  // One run on seeded noise; buffers have guards behind them. Returns each output's rows.
  struct Run {
    std::vector<std::vector<std::uint8_t>> inputs, outputs;
    std::vector<std::uint64_t> output_row_bytes;
  };
  Run run(Session& s, std::uint32_t batch, std::uint32_t seed) {
    Run out;
    leat_tensor inputs[kRoom], outputs[kRoom];
    std::uint32_t input_count = kRoom, output_count = kRoom;
    char error[256] = "";
    EXPECT_EQ(s.executor->describe(s.session, batch, inputs, &input_count, outputs, &output_count, error, sizeof error),
              0)
        << error;
    const bool raw = inputs[0].rank == 2 && inputs[0].shape[1] == 0;
    if (raw) {
      EXPECT_EQ(input_count, 1u);
      input_count = batch;
      for (std::uint32_t i = 0; i < batch; ++i) {
        inputs[i] = inputs[0];
        inputs[i].rank = 1, inputs[i].bytes = kRawBytes, inputs[i].shape[0] = kRawBytes;
      }
    }
    for (std::uint32_t i = 0; i < input_count; ++i) {
      out.inputs.emplace_back(inputs[i].bytes + kGuard, kGuardByte);
      const std::uint64_t row = raw ? kRawBytes : inputs[i].bytes / batch;
      for (std::uint64_t at = 0; at < inputs[i].bytes; at += row)
        fill(out.inputs.back().data() + at, row, inputs[i].dtype,
             seed + static_cast<std::uint32_t>(raw ? i : at / row));
      inputs[i].data = out.inputs.back().data();
    }
    for (std::uint32_t i = 0; i < output_count; ++i) {
      out.outputs.emplace_back(outputs[i].bytes + kGuard, kGuardByte);
      outputs[i].data = out.outputs.back().data();
      out.output_row_bytes.push_back(outputs[i].bytes / batch);
    }
    const auto before = out.inputs;
    EXPECT_EQ(s.executor->run(s.session, batch, inputs, input_count, outputs, output_count, error, sizeof error), 0)
        << error;
    EXPECT_EQ(before, out.inputs) << "an executor may not write into its inputs";
    for (auto& o : out.outputs) {
      for (std::size_t i = o.size() - kGuard; i < o.size(); ++i)
        EXPECT_EQ(o[i], kGuardByte) << "written behind an output";
      o.resize(o.size() - kGuard);
    }
    return out;
  }
  static void fill(std::uint8_t* at, std::uint64_t bytes, std::uint8_t dtype, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(-1, 1);
    for (std::uint64_t i = 0; i < bytes; i += dtype == LEAT_F32 ? 4 : 1) {
      const float value = unit(random);
      if (dtype == LEAT_F32)
        std::memcpy(at + i, &value, 4);
      else
        at[i] = static_cast<std::uint8_t>(random());
    }
  }
  // Row r of `whole` was made of the same input as row 0 of `one`.
  void expect_same_row(const Run& whole, std::uint32_t r, const Run& one) {
    for (std::size_t o = 0; o < whole.outputs.size(); ++o) {
      const std::uint8_t* a = whole.outputs[o].data() + r * whole.output_row_bytes[o];
      const std::uint8_t* b = one.outputs[o].data();
      if (GetParam().exact_across_batches) {
        EXPECT_EQ(std::memcmp(a, b, one.output_row_bytes[o]), 0) << "row " << r << " of output " << o;
        continue;
      }
      for (std::uint64_t i = 0; i < one.output_row_bytes[o]; i += 4) {
        float x, y;
        std::memcpy(&x, a + i, 4), std::memcpy(&y, b + i, 4);
        ASSERT_NEAR(x, y, 1e-4 * std::max(1.0f, std::abs(y))) << "row " << r << " of output " << o;
      }
    }
  }
};

TEST_P(ExecutorConformance, SaysItsVersionAndName) {
  const auto found = find_executor(GetParam().executor);
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_EQ((*found)->abi, LEAT_EXECUTOR_ABI);
  EXPECT_EQ((*found)->name, GetParam().executor);
}

TEST_P(ExecutorConformance, DescribesShapesThatFitTheirBytes) {
  Session s;
  ASSERT_NO_FATAL_FAILURE(open(&s));
  for (std::uint32_t batch = 1; batch <= kBatchMax; ++batch) {
    leat_tensor inputs[kRoom], outputs[kRoom];
    std::uint32_t input_count = kRoom, output_count = kRoom;
    ASSERT_EQ(s.executor->describe(s.session, batch, inputs, &input_count, outputs, &output_count, nullptr, 0), 0);
    ASSERT_GE(output_count, 1u);
    for (std::uint32_t i = 0; i < output_count; ++i) {
      EXPECT_EQ(outputs[i].shape[0], batch);
      std::uint64_t bytes = outputs[i].dtype == LEAT_F32 ? 4 : outputs[i].dtype == LEAT_I64 ? 8 : 1;
      for (std::uint32_t d = 0; d < outputs[i].rank; ++d) bytes *= static_cast<std::uint64_t>(outputs[i].shape[d]);
      EXPECT_EQ(outputs[i].bytes, bytes);
    }
  }
  std::uint32_t none = 0;
  char error[64] = "";
  leat_tensor unused[1];
  EXPECT_NE(s.executor->describe(s.session, 1, unused, &none, unused, &none, error, sizeof error), 0);
  EXPECT_NE(error[0], '\0');
}

TEST_P(ExecutorConformance, SameInputSameOutput) {
  Session s;
  ASSERT_NO_FATAL_FAILURE(open(&s));
  EXPECT_EQ(run(s, 3, 5).outputs, run(s, 3, 5).outputs);
  EXPECT_NE(run(s, 3, 5).outputs, run(s, 3, 500).outputs);
}

TEST_P(ExecutorConformance, ARowsAnswerDoesNotDependOnItsBatch) {
  Session s;
  ASSERT_NO_FATAL_FAILURE(open(&s));
  for (const std::uint32_t batch : {kBatchMax, 2u, 4u}) {
    const Run whole = run(s, batch, 40);
    for (std::uint32_t r = 0; r < batch; ++r) expect_same_row(whole, r, run(s, 1, 40 + r));
  }
}

TEST_P(ExecutorConformance, SessionsInSeveralThreadsDoNotDisturbEachOther) {
  Session first;
  ASSERT_NO_FATAL_FAILURE(open(&first));
  const auto wanted = run(first, 2, 9).outputs;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Session s;
      ASSERT_NO_FATAL_FAILURE(open(&s));
      for (int i = 0; i < 10; ++i) EXPECT_EQ(run(s, 2, 9).outputs, wanted);
    });
  }
  for (auto& t : threads) t.join();
}

TEST_P(ExecutorConformance, TooLittleRoomAndWrongCountsAreRefusedInOneLine) {
  Session s;
  ASSERT_NO_FATAL_FAILURE(open(&s));
  leat_tensor inputs[kRoom], outputs[kRoom];
  std::uint32_t input_count = kRoom, output_count = kRoom;
  ASSERT_EQ(s.executor->describe(s.session, 1, inputs, &input_count, outputs, &output_count, nullptr, 0), 0);
  std::vector<std::uint8_t> in(inputs[0].bytes + kRawBytes), out(outputs[0].bytes);
  for (std::uint32_t i = 0; i < input_count; ++i) inputs[i].data = in.data();
  for (std::uint32_t i = 0; i < output_count; ++i) outputs[i].data = out.data();
  char error[256] = "";
  EXPECT_NE(s.executor->run(s.session, 1, inputs, input_count + 1, outputs, output_count, error, sizeof error), 0);
  EXPECT_NE(error[0], '\0');
  outputs[0].bytes -= 1;
  error[0] = '\0';
  EXPECT_NE(s.executor->run(s.session, 1, inputs, input_count, outputs, output_count, error, sizeof error), 0);
  EXPECT_NE(error[0], '\0');
  EXPECT_EQ(std::string(error).find('\n'), std::string::npos);
}

TEST_P(ExecutorConformance, AModelThatCannotBeOpenedIsOneLine) {
  const auto found = find_executor(GetParam().executor);
  ASSERT_TRUE(found.ok());
  for (const std::string& path : {GetParam().broken_path, GetParam().broken_path + ".missing"}) {
    const leat_session_options options{path.c_str(), 0, UINT32_MAX, 1, 1, nullptr};
    leat_session* session = nullptr;
    char error[256] = "", small[8] = "";
    EXPECT_NE((*found)->open(&options, &session, error, sizeof error), 0);
    EXPECT_EQ(session, nullptr);
    EXPECT_NE(std::string(error).find(path), std::string::npos) << error;
    EXPECT_EQ(std::string(error).find('\n'), std::string::npos);
    EXPECT_NE((*found)->open(&options, &session, small, sizeof small), 0);
    EXPECT_LT(std::strlen(small), sizeof small);
  }
}

}  // namespace leat::exec
