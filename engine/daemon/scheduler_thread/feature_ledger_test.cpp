// Who holds which rows between two stages, and that all come back.
#include "engine/daemon/scheduler_thread/feature_ledger.h"

#include <gtest/gtest.h>

#include <span>

namespace leat::daemon {
namespace {

const shm::FeatureSpec kEdges[] = {{.rows = 8, .scrap = 4, .row_bytes = 16}, {.rows = 4, .scrap = 4, .row_bytes = 16}};

FeatureLedger ledger_of(std::span<const shm::FeatureSpec> edges, std::uint32_t tasks) {
  FeatureLedger out(static_cast<std::uint32_t>(edges.size()), tasks);
  for (std::uint32_t e = 0; e < edges.size(); ++e) out.begin(e, shm::FeatureRows(edges[e]));
  return out;
}

TEST(FeatureLedger, WhatIsKeptIsFoundOnceByModuleAndItem) {
  FeatureLedger ledger = ledger_of(kEdges, 8);
  FeatureLedger::Chain a = FeatureLedger::kEmpty, b = FeatureLedger::kEmpty;
  const std::uint32_t row = ledger.take(0, 3);
  for (std::uint32_t i = 0; i < 3; ++i)
    ledger.keep(i < 2 ? a : b, {.module = 5,
                                .item = i,
                                .edge = 0,
                                .row = row + i,
                                .items = 1,
                                .reason = i == 1 ? Reason::bad_frame : Reason::none});
  EXPECT_EQ(ledger.in_use(0), 3U);
  const Features one = ledger.find(a, 5, 1);
  EXPECT_EQ(one.row, row + 1);
  EXPECT_EQ(one.reason, Reason::bad_frame);
  EXPECT_EQ(ledger.in_use(0), 3U) << "a batch reads them now";
  ledger.give(one.edge, one.row, one.items);
  ledger.forget(a, 5, 2);  // the other chain's
  EXPECT_EQ(ledger.in_use(0), 2U);
  ledger.forget(a, 5, 0);
  ledger.forget(b);
  EXPECT_EQ(ledger.in_use(0), 0U);
  EXPECT_EQ(a, FeatureLedger::kEmpty);
  EXPECT_EQ(b, FeatureLedger::kEmpty);
}

TEST(FeatureLedger, EntriesAreUsedAgain) {
  FeatureLedger ledger = ledger_of(kEdges, 3);
  FeatureLedger::Chain chain = FeatureLedger::kEmpty;
  for (std::uint32_t round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i < 3; ++i)
      ledger.keep(chain, {.module = i, .item = 0, .edge = i % 2, .row = ledger.take(i % 2, 1), .items = 1});
    if (round % 2 == 0) ledger.forget(chain, 1, 0);
    ledger.forget(chain);
  }
  EXPECT_EQ(ledger.in_use(0) + ledger.in_use(1), 0U);
}

TEST(FeatureLedger, ScrapIsNobodys) {
  FeatureLedger ledger = ledger_of(kEdges, 8);
  FeatureLedger::Chain chain = FeatureLedger::kEmpty;
  (void)ledger.take(1, 3);
  const std::uint32_t row = ledger.take(1, 2);
  EXPECT_TRUE(ledger.scrap(1, row));
  ledger.keep(chain, {.module = 0, .item = 0, .edge = 1, .row = row, .items = 2});
  ledger.forget(chain);
  EXPECT_EQ(ledger.in_use(1), 3U);
}

TEST(FeatureLedgerDeathTest, WhatWasNotMadeIsNotFound) {
  FeatureLedger ledger = ledger_of(kEdges, 8);
  FeatureLedger::Chain chain = FeatureLedger::kEmpty;
  EXPECT_DEATH((void)ledger.find(chain, 0, 0), "");
}

}  // namespace
}  // namespace leat::daemon
