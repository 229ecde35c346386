// What `leat top --once` prints: layout, columns and pages, swept over thousands of sizes; text and JSON against the
// same samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "leat/leat.h"
#include "shm/src/client/client_port.h"
#include "tools/base/json/json.h"
#include "tools/leat/top/page.h"
#include "tools/leat/top/picture.h"
#include "tools/leat/top/users.h"

namespace leat::tools {
namespace {

using shm::RecordSnapshot;
using ::testing::HasSubstr;

RecordSnapshot record(shm::RecordKind kind, std::uint32_t index, std::string label) {
  RecordSnapshot snapshot;
  snapshot.kind = kind;
  snapshot.index = index;
  snapshot.epoch = 1;
  snapshot.live = true;
  snapshot.label = std::move(label);
  snapshot.values.fill(shm::kUnknown);
  for (auto& buckets : snapshot.buckets) buckets.assign(shm::kBuckets, 0);
  return snapshot;
}

template <class Counter>
void set(RecordSnapshot& snapshot, Counter counter, std::uint64_t value) {
  snapshot.values[static_cast<std::size_t>(counter)] = value;
}

Window example(std::uint32_t streams, std::uint32_t modules, std::uint32_t partitions) {
  using shm::StreamCounter;
  Window window;
  window.before.at_ns = 1'000'000'000;
  window.now.at_ns = 3'000'000'000;
  for (Sample* sample : {&window.before, &window.now}) {
    const std::uint64_t k = sample == &window.now ? 2 : 1;
    sample->daemon = record(shm::RecordKind::daemon, 0, "leatd");
    set(*sample->daemon, shm::DaemonCounter::pid, 4321);
    set(*sample->daemon, shm::DaemonCounter::loops, 1000 * k);
    set(*sample->daemon, shm::DaemonCounter::loop_ns_max, 1'500'000);
    set(*sample->daemon, shm::DaemonCounter::stalls, 3);
    sample->total = record(shm::RecordKind::total, 0, "total");
    sample->total->causes[static_cast<std::size_t>(Reason::superseded)] = 5 * k;
    sample->total->causes[static_cast<std::size_t>(Reason::expired)] = 7 * k;
    for (std::uint32_t i = 0; i < streams; ++i) {
      RecordSnapshot stream = record(shm::RecordKind::stream, i, "stream " + std::to_string(i));
      set(stream, StreamCounter::submitted, 100 * k * (i + 1));
      set(stream, StreamCounter::completed, (100 - i % 50) * k);
      set(stream, StreamCounter::late, i % 50 * k);
      set(stream, StreamCounter::in_flight, i % 3);
      if (k == 2) stream.buckets[0][shm::bucket_of(20'000'000)] += 90;
      sample->streams.push_back(stream);
    }
    for (std::uint32_t i = 0; i < modules; ++i)
      sample->modules.push_back(record(shm::RecordKind::module, i, "module " + std::to_string(i)));
    for (std::uint32_t i = 0; i < partitions; ++i) {
      RecordSnapshot partition = record(shm::RecordKind::partition, i, "cpu" + std::to_string(i));
      set(partition, shm::PartitionCounter::state, 2);
      set(partition, shm::PartitionCounter::busy_ns, 1'500'000'000 * (k - 1));
      sample->partitions.push_back(partition);
    }
  }
  return window;
}

TEST(Layout, EveryPaneIsInsideApartAndWorthShowing) {
  constexpr std::uint64_t kSeed = 2024;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  for (int rows = -1; rows <= 120; ++rows) {
    for (int trial = 0; trial < 60; ++trial) {
      TopCounts counts{.reasons = static_cast<int>(random() % 20)};
      for (int& n : counts.tables) n = static_cast<int>(random() % (trial % 2 == 0 ? 6 : 200));
      const TopLayout layout = layout_top(rows, counts);
      int next = 0, used = 0, wanted = 0;
      const auto check = [&](const Area& area, int min) {
        if (area.height == 0) return;
        EXPECT_GE(area.height, min);
        EXPECT_GE(area.top, next);
        EXPECT_LE(area.top + area.height, rows);
        next = area.top + area.height;
        used += area.height;
      };
      check(layout.head, 1);
      for (std::size_t i = 0; i < std::size(kTables); ++i) {
        check(layout.tables[i], 2);
        EXPECT_LE(layout.tables[i].height, counts.tables[i] + 1);
        wanted += counts.tables[i] > 0 ? counts.tables[i] + 1 : 0;
      }
      check(layout.reasons, 2);
      wanted += counts.reasons > 0 ? counts.reasons + 1 : 0;
      check(layout.foot, 1);
      // No line is left empty while a pane has more to show; one may be, too small for a title and a row.
      if (rows > kHeadLines + 1 && wanted > rows - kHeadLines - 1) {
        EXPECT_GE(used, rows - 1);
      }
      if (rows >= kHeadLines + 3 && counts.tables[0] > 0) {
        EXPECT_GE(layout.tables[0].height, 2) << "streams come first";
      }
      const TopLayout larger = layout_top(rows + 1, counts);
      for (std::size_t i = 0; i < std::size(kTables); ++i) {
        if (layout.tables[i].height > 0) {
          EXPECT_GT(larger.tables[i].height, 0);
        }
      }
    }
  }
}

TEST(Columns, FitEveryWidthAndGiveWayByRank) {
  for (const Pane pane : kTables) {
    std::size_t before = 0;
    for (int width = 0; width < 400; ++width) {
      int name_width = 0;
      const auto shown = fitting_columns(columns_of(pane), width, &name_width);
      ASSERT_FALSE(shown.empty());
      EXPECT_EQ(shown.front(), 0U);
      EXPECT_GE(shown.size(), before) << "a wider screen shows no fewer columns";
      before = shown.size();
      int sum = name_width;
      for (std::size_t i = 1; i < shown.size(); ++i) sum += 1 + columns_of(pane)[shown[i]].width;
      EXPECT_LE(sum, width);
    }
    std::size_t visible = 0;
    for (const Column& column : columns_of(pane)) visible += column.width > 0;
    EXPECT_EQ(before, visible) << "400 columns are enough for all";
  }
}

TEST(Columns, NamesAreUniqueAndExplained) {
  for (const Pane pane :
       {Pane::daemon, Pane::total, Pane::streams, Pane::modules, Pane::partitions, Pane::edges, Pane::users}) {
    std::set<std::string_view> names;
    for (const Column& column : columns_of(pane)) {
      EXPECT_TRUE(names.insert(column.name).second) << column.name;
      EXPECT_FALSE(column.text.empty());
      EXPECT_LE(column.title.size(), static_cast<std::size_t>(column.width > 0 ? column.width : 99)) << column.name;
      EXPECT_THAT(column_help(), HasSubstr(std::string(column.name)));
    }
  }
}

TEST(Users, TextAndJsonNameWhoHasWhatAndWhyHeWasRefused) {
  using shm::UserCounter;
  Window window = example(2, 1, 1);
  RecordSnapshot user = record(shm::RecordKind::user, 0, "uid 4000000001");
  set(user, UserCounter::uid, 4'000'000'001u);
  set(user, UserCounter::sessions, 3);
  set(user, UserCounter::max_sessions, 16);
  set(user, UserCounter::max_streams, UINT32_MAX);
  set(user, UserCounter::max_priority, LEAT_PRIORITY_HIGH);
  set(user, UserCounter::min_slo_ns, shm::kQuarterSlo);
  set(user, UserCounter::overload_set, 1u << LEAT_OVERLOAD_fifo | 1u << LEAT_OVERLOAD_latest);
  set(user, UserCounter::share_permille, 2500);
  set(user, UserCounter::refused, 7);
  set(user, UserCounter::last_refusal, static_cast<std::uint64_t>(shm::Refusal::priority));
  user.causes[static_cast<std::size_t>(shm::Refusal::priority)] = 7;
  user.causes[shm::kViolationCauses + static_cast<std::size_t>(shm::Violation::bad_slot)] = 2;
  window.now.users.push_back(user);
  RecordSnapshot client = record(shm::RecordKind::client, 5, "camera");
  set(client, shm::ClientCounter::uid, 4'000'100'001u);  // a subordinate of the user's
  set(client, shm::ClientCounter::user, 0);
  window.now.clients.push_back(client);
  for (RecordSnapshot& stream : window.now.streams) {
    set(stream, shm::StreamCounter::client, 5);
    set(stream, shm::StreamCounter::within_share, 40);
  }

  const auto json = Json::parse(users_json(window));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["name"], "4000000001") << "a user this host does not know is shown by number";
  EXPECT_EQ(json[0]["sessions"], 3);
  EXPECT_EQ(json[0]["in_flight"], 1) << "of both streams: 0 and 1";
  EXPECT_EQ(json[0]["share"], 2.5);
  EXPECT_EQ(json[0]["within_share"], 80) << "of both streams";
  EXPECT_TRUE(json[0]["max_streams"].is_null()) << "no limit is not a number";
  EXPECT_EQ(json[0]["refusals"], (Json{{"priority", 7}}));
  EXPECT_EQ(json[0]["violations"], (Json{{"bad_slot", 2}}));
  EXPECT_EQ(json, Json::parse(top_json(window))["users"]);
  const std::string text = users_text(window);
  for (const char* words : {"3 of 16 connections", "priority high", "a quarter of the application's", "fifo latest",
                            "counts 2.50; 80 requests", "refused 7 x priority", "disconnected 2 x bad_slot"})
    EXPECT_THAT(text, HasSubstr(words));
  std::string page;
  for (const Line& line : top_page(window, 60, 200)) page += line.text + "\n";
  EXPECT_THAT(page, HasSubstr("4000000001"));
}

TEST(Page, HasExactlyTheSizeAskedForAtEverySize) {
  const Window windows[] = {Window{}, example(1, 2, 1), example(40, 6, 20)};
  for (const Window& window : windows) {
    for (int rows = 0; rows <= 60; rows += 3) {
      for (int columns = 0; columns <= 240; columns += 7) {
        const auto lines = top_page(window, rows, columns);
        ASSERT_EQ(lines.size(), static_cast<std::size_t>(rows));
        for (const Line& line : lines) ASSERT_LE(line.text.size(), static_cast<std::size_t>(columns));
      }
    }
  }
}

TEST(Page, AClientsNameCannotSpeakToTheTerminal) {
  Window window = example(1, 0, 0);
  window.now.streams[0].label = "evil\033[2J\x9b\n\tname";
  for (const Line& line : top_page(window, 20, 120)) {
    for (const char c : line.text) EXPECT_TRUE(c >= ' ' && c <= '~');
  }
}

TEST(Page, AsAPictureHasEveryLineAndNothingUnescaped) {
  const std::string svg =
      top_picture({{"leatd <b>  2", Style::title}, {"   ", Style::plain}, {"stream  a&b", Style::bad}});
  EXPECT_THAT(svg, HasSubstr("leatd &lt;b&gt;  2</text>"));
  EXPECT_THAT(svg, HasSubstr("stream  a&amp;b</text>"));
  EXPECT_THAT(svg, HasSubstr("xml:space=\"preserve\""));
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
}

TEST(Figures, AreOfTheWindowAndUnknownIsNotZero) {
  const Window window = example(2, 1, 1);
  const auto json = Json::parse(top_json(window));
  EXPECT_DOUBLE_EQ(json["window_seconds"].get<double>(), 2);
  EXPECT_EQ(json["daemon"]["pid"], 4321);
  EXPECT_DOUBLE_EQ(json["daemon"]["loops_per_second"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(json["daemon"]["loop_us_max"].get<double>(), 1500);
  EXPECT_TRUE(json["daemon"]["clients"].is_null());
  EXPECT_DOUBLE_EQ(json["streams"][0]["submitted_per_second"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(json["streams"][1]["miss_percent"].get<double>(), 1);
  EXPECT_NEAR(json["streams"][0]["latency_ms_p50"].get<double>(), 20, 1);
  EXPECT_TRUE(json["streams"][0]["wait_ms_p99"].is_null());
  EXPECT_DOUBLE_EQ(json["partitions"][0]["busy_percent"].get<double>(), 75);
  EXPECT_EQ(json["total"]["reasons"]["expired"], 14);
  EXPECT_TRUE(json["modules"][0]["tasks_per_second"].is_number());
  const auto first = Json::parse(top_json({.before = {}, .now = window.now}));
  EXPECT_TRUE(first["streams"][0]["submitted_per_second"].is_null()) << "one sample gives no rate";
  EXPECT_TRUE(first["streams"][0]["latency_ms_p50"].is_null());
}

TEST(Figures, ScreenAndJsonShowTheSame) {
  const Window window = example(3, 1, 1);
  std::string screen;
  for (const Line& line : top_page(window, 40, 300)) screen += line.text + "\n";
  const auto json = Json::parse(top_json(window));
  for (const Pane pane : kTables) {
    for (const auto& row : json[std::string(name_of(pane))]) {
      for (const Column& column : columns_of(pane)) {
        const auto& cell = row[std::string(column.name)];
        if (column.width == 0 || !cell.is_number()) continue;
        EXPECT_THAT(screen, HasSubstr(shown(cell.get<double>(), column.unit))) << column.name;
      }
    }
  }
}

TEST(Figures, ARecordBegunAnewHasNoRate) {
  Window window = example(1, 0, 0);
  window.now.streams[0].epoch = 2;
  EXPECT_TRUE(Json::parse(top_json(window))["streams"][0]["submitted_per_second"].is_null());
}

TEST(Shown, FitsItsUnit) {
  EXPECT_EQ(shown({}, Unit::ms), "-");
  EXPECT_EQ(shown(0.0, Unit::ms), "0.00");
  EXPECT_EQ(shown(12.345, Unit::ms), "12.3");
  EXPECT_EQ(shown(1234.5, Unit::ms), "1234");
  EXPECT_EQ(shown(123456.0, Unit::bytes), "121K");
  EXPECT_EQ(shown(3.0 * 1024 * 1024 * 1024, Unit::bytes), "3072M");
  EXPECT_EQ(shown(75.0, Unit::seconds), "1:15");
  EXPECT_EQ(shown(7300.0, Unit::seconds), "2h01");
  EXPECT_EQ(shown(std::string("up"), Unit::text), "up");
}

}  // namespace
}  // namespace leat::tools
