// The main() of every test program: as GoogleTest's, but what was skipped is not passed over in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // SKIP_RETURN_CODE of leat_test()
  testing::InitGoogleMock(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const int skipped = testing::UnitTest::GetInstance()->skipped_test_count();
  if (failed != 0 || skipped == 0) return failed;
  std::printf("%d of %d tests skipped, the others passed\n", skipped,
              testing::UnitTest::GetInstance()->test_to_run_count());
  return kSkipped;
}
