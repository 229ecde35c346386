#include "tools/leat/bridge/crop_exchange.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace leat::tools {
namespace {

bool rings(int bell) {
  pollfd on{bell, POLLIN, 0};
  return ::poll(&on, 1, 0) == 1;
}

TEST(CropExchange, TheBellRingsForWhatIsToBeTaken) {
  CropExchange exchange({});
  EXPECT_FALSE(rings(exchange.crops_bell()));
  exchange.put(Crop{.id = 7, .model = {}, .layout = {}, .tensor = {}});
  EXPECT_TRUE(rings(exchange.crops_bell()));
  EXPECT_EQ(exchange.take_crops().size(), 1U);
  EXPECT_FALSE(rings(exchange.crops_bell()));
}

// The link may be told to stop after it looked whether it was, and before it takes crops and waits for the next ones.
TEST(CropExchange, NobodyWaitsWhoWasToldToStop) {
  CropExchange exchange({});
  exchange.stop();
  EXPECT_TRUE(exchange.take_crops().empty());
  EXPECT_TRUE(rings(exchange.crops_bell()));
}

}  // namespace
}  // namespace leat::tools
