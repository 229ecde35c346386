// What a record of the simulator's holds, counted: as a summary, and copied while it is written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/core/test/test_bench.h"
#include "engine/record/history.h"
#include "engine/record/segments.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"
#include "tools/leat/record/summary.h"
#include "tools/leat/record/trace_events.h"

namespace leat::tools {
namespace {

using core::test::kMs;

constexpr std::uint64_t kSegment = 8 << 10;

// A chain of two modules in overload, a partition that is lost and comes back.
struct Recorded {
  explicit Recorded(std::size_t segments, const char* application = "street")
      : bytes(segments * kSegment), ring(bytes, kSegment, 1'000'000'000, "1.2.3") {
    sim::Scenario s;
    s.topology = core::test::chain(2, 2, 4, 2 * kMs, 3 * kMs, 60 * kMs);
    s.streams = {{.depth = 64}, {.depth = 2, .supersede = core::Supersede::latest}};
    for (int i = 0; i < 2'000; ++i)
      s.arrivals.push_back({.at_ns = i * kMs * 2 / 3, .stream = static_cast<std::uint32_t>(i % 2)});
    s.faults = {{.at_ns = 300 * kMs, .kind = sim::FaultKind::lose, .partition = 1},
                {.at_ns = 500 * kMs, .kind = sim::FaultKind::restore, .partition = 1}};
    s.names = {.applications = {application}, .modules = {"detect", "read"}, .partitions = {"a", "b", "c", "d"}};
    s.record = &ring;
    out = sim::run(s);
  }
  record::Record read() const {
    auto record = record::Record::read(bytes);
    EXPECT_TRUE(record.ok()) << record.error();
    return std::move(*record);
  }
  std::vector<std::byte> bytes;
  record::Ring ring;
  sim::Outcomes out;
};

struct File {
  explicit File(std::span<const std::byte> bytes) {
    std::string name = (std::filesystem::temp_directory_path() / "leat-record-XXXXXX").string();
    const int fd = mkstemp(name.data());
    EXPECT_GE(fd, 0);
    close(fd);
    path = name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~File() { std::filesystem::remove(path); }
  std::string path;
};

TEST(RecordTools, TheSummaryCountsWhatTheCoreCounted) {
  const Recorded run(32);
  record::Record record = run.read();
  const auto s = summary_of(record);
  ASSERT_TRUE(s.ok()) << s.error();
  EXPECT_TRUE(s->whole);
  EXPECT_EQ(s->segments_before, 0u);
  EXPECT_EQ(s->version, "1.2.3");
  EXPECT_EQ(s->of(record::Kind::submit), 2'000u);
  EXPECT_EQ(s->of(record::Kind::partition_lost), 1u);
  for (std::size_t o = 1; o < kOutcomeCount; ++o)
    EXPECT_EQ(s->outcomes[o], run.out.counters.total.of(static_cast<Outcome>(o))) << o;
  const Json json = summary_json(*s);
  EXPECT_EQ(json["frames"]["submitted"].get<int>(), 2'000);
  EXPECT_EQ(json["applications"][0]["modules"][1].get<std::string>(), "read");
  EXPECT_EQ(json["entries"]["partition_ready"].get<int>(), 5);
  const std::string text = summary_text(*s);
  for (const char* said : {"leatd 1.2.3", "1970-01-01T00:00:01Z", "street (60 ms)", "a, b, c, d", "2000 submitted"})
    EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
}

TEST(RecordTools, ARingThatCameRoundSaysWhatItLacks) {
  const Recorded run(2);
  record::Record record = run.read();
  const auto s = summary_of(record);
  ASSERT_TRUE(s.ok()) << s.error();
  EXPECT_FALSE(s->whole);
  EXPECT_GT(s->segments_before, 0u);
  EXPECT_NE(summary_text(*s).find("segments before it are lost"), std::string::npos);
}

TEST(RecordTools, WhereNothingWasRecordedThatIsSaid) {
  const std::vector<std::byte> nothing(8 << 20);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{4096}, nothing.size()}) {
    const File file(std::span<const std::byte>(nothing).first(bytes));
    const auto record = record::Record::read_file(file.path);
    ASSERT_FALSE(record.ok()) << bytes;
    EXPECT_EQ(record.error(), file.path + ": nothing was recorded in it");
  }
}

TEST(RecordTools, OfOneThatWasCutWhatIsThereIsRead) {
  const Recorded run(32);
  const auto whole = record::Record::read(run.bytes);
  ASSERT_TRUE(whole.ok());
  const std::size_t segment = run.ring.segment_bytes();
  for (const std::size_t bytes : {segment + 1, 2 * segment - 1, 2 * segment, 2 * segment + 129}) {
    const File file(std::span<const std::byte>(run.bytes).first(bytes));
    auto record = record::Record::read_file(file.path);
    ASSERT_TRUE(record.ok()) << record.error();
    EXPECT_GE(record->segments(), bytes / segment);
    EXPECT_LT(record->segments(), whole->segments());
    record::Entry e;
    while (record->next(e)) {
    }
    EXPECT_EQ(record->problem(), "");
  }
  const File head(std::span<const std::byte>(run.bytes).first(200));
  const auto record = record::Record::read_file(head.path);
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error(), head.path + ": nothing was recorded in it");
}

TEST(RecordTools, AnotherFormatIsRefusedWithTheReleaseThatReadsIt) {
  for (const std::uint32_t format : {record::kFormat - 1, record::kFormat + 1}) {
    Recorded run(32);
    std::memcpy(run.bytes.data() + offsetof(record::SegmentHeader, format), &format, sizeof format);
    const File file(run.bytes);
    const auto record = record::Record::read_file(file.path);
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(record.error(), file.path + ": it is a record of format " + std::to_string(format) +
                                  ", and this leat reads format " + std::to_string(record::kFormat) +
                                  "; use the release that wrote it, 1.2.3");
  }
}

TEST(RecordTools, AFileIsReadAsItsNewestSegmentsInOrder) {
  const Recorded run(2);
  const File file(run.bytes);
  const auto copy = record::read_segments(file.path);
  ASSERT_TRUE(copy.ok()) << copy.error();
  auto record = record::Record::read(*copy);
  ASSERT_TRUE(record.ok()) << record.error();
  record::Record was = run.read();
  EXPECT_EQ(record->bytes(), was.bytes());
  EXPECT_EQ(record->first_sequence(), was.first_sequence());
  const auto a = summary_of(*record), b = summary_of(was);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->entries, b->entries);
}

TEST(RecordTools, OneThatIsBeingOverwrittenIsLeftOut) {
  Recorded run(4);
  const std::uint64_t sequence = run.ring.newest();
  record::SegmentHeader h;
  std::byte* const oldest = run.bytes.data() + run.ring.place(sequence - 3);
  std::memcpy(&h, oldest, sizeof h);
  h.sequence = h.used = 0;  // as leatd leaves it at first
  std::memcpy(oldest, &h, sizeof h);
  const File file(run.bytes);
  const auto copy = record::read_segments(file.path);
  ASSERT_TRUE(copy.ok()) << copy.error();
  EXPECT_EQ(copy->size(), 3 * kSegment);
  const auto record = record::Record::read(*copy);
  ASSERT_TRUE(record.ok()) << record.error();
  EXPECT_EQ(record->first_sequence(), sequence - 2);
}

TEST(RecordTools, WhatIsDamagedIsReadUpToThere) {
  Recorded run(32);
  const std::size_t used = 200;  // bytes from the end of the newest segment
  record::SegmentHeader h;
  std::byte* const newest = run.bytes.data() + run.ring.place(run.ring.newest());
  std::memcpy(&h, newest, sizeof h);
  std::fill_n(newest + sizeof h + h.used - used, used, std::byte{0xff});
  record::Record record = run.read();
  const auto s = summary_of(record);
  ASSERT_TRUE(s.ok()) << s.error();
  EXPECT_NE(s->problem, "");
  EXPECT_GT(s->unread_bytes, 0u);
  EXPECT_LT(s->unread_bytes, used + 64) << "beside the damage no more than the entry that it begins in";
}

TEST(RecordTools, WhatIsNoRecordIsRefusedInOneLine) {
  for (const std::size_t bytes : {std::size_t{200}, std::size_t{5'000}}) {
    const File file(std::vector<std::byte>(bytes, std::byte{'x'}));
    const auto record = record::Record::read_file(file.path);
    ASSERT_FALSE(record.ok());
    EXPECT_TRUE(record.error().starts_with(file.path + ": it is no record")) << record.error();
    EXPECT_EQ(record.error().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(record::Record::read_file("/nonexistent/record").ok());
  EXPECT_FALSE(record::Record::read_file("/dev/zero").ok());
}

// Each event of the trace, counted by its phase, group and name, against the record's history.
TEST(RecordTools, TheTraceHasAllThatTheRecordHas) {
  const Recorded run(32);
  record::Record record = run.read();
  const auto history = record::history(record);
  ASSERT_TRUE(history.ok()) << history.error();
  const TraceEvents trace = trace_events(*history);
  const Json all = Json::parse(trace.json);
  std::map<std::string, std::uint64_t> phases, unserved;
  std::map<std::int64_t, double> rows;  // where the last slice of each ended
  std::map<std::string, int> marks;
  std::uint64_t tasks = 0;
  for (const Json& e : all["traceEvents"]) {
    const std::string phase = e["ph"].get<std::string>(), name = e["name"].get<std::string>();
    ++phases[phase];
    const double at_us = e["ts"].get<double>();
    EXPECT_GE(at_us, 0);
    if (phase == "X") {
      double& end = rows.try_emplace(e["tid"].get<std::int64_t>(), 0).first->second;
      EXPECT_GE(at_us, end - 1e-3) << "slices of a row follow one another";
      end = at_us + e["dur"].get<double>();
      tasks += e["args"]["tasks"].get<std::uint64_t>();
      EXPECT_TRUE(name == "detect" || name == "read") << name;
      EXPECT_EQ(e["args"]["application"].get<std::string>(), "street");
    }
    if (phase == "i" && e["cat"].get<std::string>() == "partition") ++marks[name];
    if (phase == "i" && e["pid"].get<int>() == 2) ++unserved[name];
  }
  EXPECT_EQ(phases["X"], history->runs.size());
  EXPECT_EQ(phases["X"], trace.slices);
  std::uint64_t ran = 0;
  for (const record::History::Run& r : history->runs) ran += r.count;
  EXPECT_EQ(tasks, ran);
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(phases["s"], trace.arrows);
  EXPECT_EQ(phases["f"], trace.arrows);
  EXPECT_GT(trace.arrows, 0u);
  EXPECT_EQ(marks["lost"], 1);
  EXPECT_EQ(marks["ready"], 5);
  const core::RequestCounters& total = run.out.counters.total;
  for (std::size_t r = 1; r < kReasonCount; ++r)
    EXPECT_EQ(unserved[std::string(name_of(static_cast<Reason>(r)))], total.reasons[r]) << r;
  EXPECT_GT(trace.unserved, 0u);
}

// As the format has it: every arrow begins once and ends once, not before it began, each time within a slice of its
// row; and what stands in a row stands in the order of time.
TEST(RecordTools, ArrowsOfTheTraceBeginAndEndWithinTheirSlices) {
  const Recorded run(32);
  record::Record record = run.read();
  const auto history = record::history(record);
  ASSERT_TRUE(history.ok()) << history.error();
  const Json all = Json::parse(trace_events(*history).json);
  struct Slice {
    double begin = 0, end = 0;
  };
  std::map<std::int64_t, std::vector<Slice>> rows;
  struct Arrow {
    double from = -1, to = -1;
  };
  std::map<std::uint64_t, Arrow> arrows;
  for (const Json& e : all["traceEvents"])
    if (e["ph"].get<std::string>() == "X")
      rows[e["tid"].get<std::int64_t>()].push_back(
          {e["ts"].get<double>(), e["ts"].get<double>() + e["dur"].get<double>()});
  for (const auto& [row, slices] : rows) EXPECT_TRUE(std::ranges::is_sorted(slices, {}, &Slice::begin)) << row;
  for (const Json& e : all["traceEvents"]) {
    const std::string phase = e["ph"].get<std::string>();
    if (phase != "s" && phase != "f") continue;
    const double at = e["ts"].get<double>();
    Arrow& arrow = arrows[e["id"].get<std::uint64_t>()];
    double& end = phase == "s" ? arrow.from : arrow.to;
    EXPECT_EQ(end, -1) << "an arrow's number is its own";
    end = at;
    const auto& slices = rows.at(e["tid"].get<std::int64_t>());
    EXPECT_TRUE(std::ranges::any_of(slices, [&](const Slice& s) { return at >= s.begin - 1e-3 && at <= s.end + 1e-3; }))
        << phase << " at " << at;
  }
  EXPECT_FALSE(arrows.empty());
  for (const auto& [id, arrow] : arrows) {
    EXPECT_GE(arrow.from, 0) << id;
    EXPECT_GE(arrow.to, arrow.from) << id;
  }
}

// Names may be any bytes in a record that was damaged.
TEST(RecordTools, NamesThatAreNoTextAreHarmless) {
  const Recorded run(32,
                     "str\xff"
                     "eet");
  record::Record record = run.read();
  const auto s = summary_of(record);
  ASSERT_TRUE(s.ok()) << s.error();
  const auto json = Json::try_parse(summary_json(*s).dump());
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["applications"][0]["name"].get<std::string>(),
            "str\xef\xbf\xbd"
            "eet");
  const auto history = record::history(record);
  ASSERT_TRUE(history.ok()) << history.error();
  EXPECT_TRUE(Json::try_parse(trace_events(*history).json));
}

// Whatever a damaged record says, what is drawn of it is JSON.
TEST(RecordTools, DamagedRecordsAreDrawnAsFarAsTheyCanBeRead) {
  const Recorded run(8);
  std::uint64_t drawn = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes = run.bytes;
    for (std::uint64_t k = 0; k < 4; ++k)
      bytes[sim::mix(4 * i + k) % bytes.size()] = static_cast<std::byte>(sim::mix(i + 1000 * k));
    auto record = record::Record::read(std::move(bytes));
    if (!record.ok()) continue;
    const auto history = record::history(*record);
    if (!history.ok()) continue;
    EXPECT_TRUE(Json::try_parse(trace_events(*history).json)) << i;
    ++drawn;
    const auto s = summary_of(*record);
    EXPECT_TRUE(!s.ok() || Json::try_parse(summary_json(*s).dump())) << i;
  }
  EXPECT_GT(drawn, 100u);
}

}  // namespace
}  // namespace leat::tools
