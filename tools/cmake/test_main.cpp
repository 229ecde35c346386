// The main() of every test program: as GoogleTest's, but what was skipped is not passed over in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // SKIP_RETURN_CODE of leat_test()
  // Every simulation takes tens of MiB and gives them back: bringing the same pages again and again was two fifths of
  // the time.
  constexpr int kKeep = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKeep);
  mallopt(M_TRIM_THRESHOLD, kKeep);
  testing::InitGoogleMock(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
    std::printf("no test of this name\n");
    return 1;
  }
  const int skipped = all.skipped_test_count();
  if (failed != 0 || skipped == 0) return failed;
  std::printf("%d of %d tests skipped, the others passed\n", skipped, all.test_to_run_count());
  return kSkipped;
}
