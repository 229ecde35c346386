// Screens of recorded runs, compared with files: a changed screen is a changed file in review. The text of each comes
// first, then the meanings of its cells. The pictures of the documents are made here too.
//
// What differs is written beside the build; where it is as it should be: cp build/top-screens/NAME
// tools/leat/top/golden/, and *.svg to docs/pictures/.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/leat/top/pages/picture.h"
#include "tools/leat/top/session.h"
#include "tools/leat/top/source/recording.h"
#include "tools/leat/top/test/world.h"

namespace leat::tools::top {
namespace {

namespace fs = std::filesystem;
const fs::path kTop = fs::path(LEAT_SOURCE_DIR) / "tools/leat/top";
const fs::path kPictures = fs::path(LEAT_SOURCE_DIR) / "docs/pictures";
const fs::path kMade = fs::path(LEAT_BUILD_DIR) / "top-screens";

struct Shot {
  const char* name;
  const char* recording;
  int seconds;  // from its start
  int columns = 80, rows = 24;
  Page page = Page::now;
  Look look = Look::none;
  const char* stream = "";     // the cursor's
  const char* partition = "";  // the same
  bool ascii = false;
  int back = 0;  // seconds
  bool help = false;
};
void PrintTo(const Shot& shot, std::ostream* out) { *out << shot.name; }

Canvas made(const Shot& shot) {
  auto recording = Recording::open((kTop / "recordings" / shot.recording).string());
  EXPECT_TRUE(recording.ok()) << (recording.ok() ? "" : recording.error());
  if (!recording.ok()) return Canvas(0, 0);
  Session session(true);
  while (auto seen = recording->next()) {
    if (seen->wall_ns > recording->first_wall_ns() + shot.seconds * kSecondNs + kSecondNs / 2) break;
    session.take(std::move(*seen));
  }
  View& view = session.view();
  view.page = shot.page;
  view.look = shot.look;
  view.help = shot.help;
  for (const StreamFigures& s : session.shown().streams)
    if (s.who->name == shot.stream) view.stream = s.who->key;
  for (const PartitionFigures& p : session.shown().partitions)
    if (p.name == shot.partition) view.partition = p.key;
  for (int i = 0; i < shot.back; ++i) (void)session.key(Action::earlier);
  Canvas canvas = session.screen(shot.rows, shot.columns).canvas;
  if (shot.ascii) canvas.to_ascii();
  return canvas;
}

std::string text_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void compare(const std::string& is, const fs::path& file, const char* where_to) {
  if (is == text_in(file)) return;
  fs::create_directories(kMade);
  std::ofstream(kMade / file.filename(), std::ios::binary) << is;
  ADD_FAILURE() << file.filename() << " is not as it was; look at " << (kMade / file.filename())
                << " and, if it is right, copy it to " << where_to << "\n"
                << (is.starts_with("<svg") ? "" : is);
}

constexpr Shot kShots[] = {
    {.name = "well", .recording = "well.top", .seconds = 44},
    {.name = "well-120x40", .recording = "well.top", .seconds = 44, .columns = 120, .rows = 40},
    {.name = "well-users", .recording = "well.top", .seconds = 44, .page = Page::users},
    {.name = "well-help", .recording = "well.top", .seconds = 44, .help = true},
    {.name = "well-leatd", .recording = "well.top", .seconds = 44, .page = Page::leatd},
    {.name = "overload", .recording = "overload.top", .seconds = 40},
    {.name = "overload-120x40", .recording = "overload.top", .seconds = 40, .columns = 120, .rows = 40},
    {.name = "overload-200x60", .recording = "overload.top", .seconds = 40, .columns = 200, .rows = 60},
    {.name = "overload-40x5", .recording = "overload.top", .seconds = 40, .columns = 40, .rows = 5},
    {.name = "overload-60x12", .recording = "overload.top", .seconds = 40, .columns = 60, .rows = 12},
    {.name = "overload-ascii", .recording = "overload.top", .seconds = 40, .ascii = true},
    {.name = "overload-users", .recording = "overload.top", .seconds = 40, .page = Page::users},
    {.name = "overload-stream", .recording = "overload.top", .seconds = 40, .look = Look::stream, .stream = "yard:3"},
    {.name = "overload-partition",
     .recording = "overload.top",
     .seconds = 77,
     .look = Look::partition,
     .partition = "mig0"},
    {.name = "overload-modules", .recording = "overload.top", .seconds = 40, .page = Page::modules},
    {.name = "overload-partitions", .recording = "overload.top", .seconds = 40, .page = Page::partitions},
    {.name = "overload-changes", .recording = "overload.top", .seconds = 40, .page = Page::changes},
    {.name = "overload-back", .recording = "overload.top", .seconds = 40, .back = 30},
    {.name = "worker-down", .recording = "down.top", .seconds = 27},
    {.name = "worker-down-120x40", .recording = "down.top", .seconds = 27, .columns = 120, .rows = 40},
    {.name = "silent", .recording = "silent.top", .seconds = 86},
    {.name = "gone", .recording = "gone.top", .seconds = 26},
};

class Screens : public ::testing::TestWithParam<Shot> {};

TEST_P(Screens, AreAsTheyWere) {
  const Canvas canvas = made(GetParam());
  compare(canvas.text() + "---- meanings\n" + canvas.meanings(),
          kTop / "golden" / (std::string(GetParam().name) + ".txt"), "tools/leat/top/golden");
}
INSTANTIATE_TEST_SUITE_P(Recorded, Screens, ::testing::ValuesIn(kShots), [](const auto& shot) {
  std::string name = shot.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Pictures, OfTheDocumentsAreOfThisRelease) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"top-well.svg", "well"}, {"top-overload.svg", "overload"}, {"top-worker-down.svg", "worker-down"}};
  for (const auto& [file, name] : kPairs)
    for (const Shot& shot : kShots)
      if (std::string(shot.name) == name) compare(picture_of(made(shot)), kPictures / file, "docs/pictures");
}

// ---- recordings ----

TEST(Recordings, ReadBackAsTheyWereSeen) {
  const fs::path path = kMade / "again.top";
  fs::create_directories(kMade);
  std::vector<Observation> first;
  {
    auto from = Recording::open((kTop / "recordings/gone.top").string());
    ASSERT_TRUE(from.ok());
    auto to = Recorder::create(path.string());
    ASSERT_TRUE(to.ok());
    while (auto seen = from->next()) {
      ASSERT_TRUE(to->write(*seen));
      first.push_back(std::move(*seen));
    }
  }
  std::ofstream(path, std::ios::app) << "{\"t\":1,\"w\":2";  // torn
  auto again = Recording::open(path.string());
  ASSERT_TRUE(again.ok());
  std::size_t count = 0;
  for (; auto seen = again->next(); ++count) {
    const Observation& was = first[count];
    ASSERT_EQ(seen->sample.at_ns, was.sample.at_ns);
    ASSERT_EQ(seen->gone, was.gone);
    ASSERT_EQ(seen->sample.streams.size(), was.sample.streams.size());
    for (std::size_t i = 0; i < was.sample.streams.size(); ++i) {
      EXPECT_EQ(seen->sample.streams[i].values, was.sample.streams[i].values);
      EXPECT_EQ(seen->sample.streams[i].causes, was.sample.streams[i].causes);
      EXPECT_EQ(seen->sample.streams[i].buckets, was.sample.streams[i].buckets);
      EXPECT_EQ(seen->sample.streams[i].label, was.sample.streams[i].label);
    }
  }
  EXPECT_EQ(count, first.size());
  EXPECT_GT(count, 20U);
}

TEST(Recordings, KeepCamerasAndGpusWhileTheyAreAsTheyWere) {
  fs::create_directories(kMade);
  const fs::path path = kMade / "cameras.top";
  test::World world(1, 1);
  auto to = Recorder::create(path.string());
  ASSERT_TRUE(to.ok());
  const CameraFigures camera{.name = "gate",
                             .source = "rtsp://camera/main",
                             .application = "plates",
                             .state = "waiting",
                             .error = "'rtsp://camera/main' cannot be opened: Connection refused",
                             .breaks = 3,
                             .damaged = 12,
                             .format_changes = 1,
                             .last_picture_ns = 7};
  const HeatFigures gpu{.uuid = "GPU-1", .held_back = "heat", .temperature_c = 81};
  for (int i = 0; i < 4; ++i) {
    world.second();
    Observation seen = world.look();
    if (i > 0) seen.cameras = {camera};
    if (i > 0 && i < 3) seen.gpus = {gpu};
    ASSERT_TRUE(to->write(seen));
  }
  auto recording = Recording::open(path.string());
  ASSERT_TRUE(recording.ok());
  EXPECT_TRUE(recording->next()->cameras.empty());
  for (int i = 1; i < 4; ++i) {
    const auto seen = recording->next();
    ASSERT_TRUE(seen && seen->cameras.size() == 1) << i;
    EXPECT_EQ(seen->cameras[0].error, camera.error);
    EXPECT_EQ(seen->cameras[0].breaks, 3);
    EXPECT_EQ(seen->cameras[0].damaged, 12);
    EXPECT_EQ(seen->cameras[0].format_changes, 1);
    EXPECT_EQ(seen->cameras[0].last_picture_ns, 7);
    EXPECT_FALSE(known(seen->cameras[0].rate)) << "unknown is not zero";
    ASSERT_EQ(seen->gpus.size(), i < 3 ? 1U : 0U);
    if (i < 3) {
      EXPECT_EQ(seen->gpus[0].temperature_c, 81);
    }
  }
  std::size_t lines = 0;
  std::istringstream text(text_in(path));
  for (std::string line; std::getline(text, line);) lines += line.find("\"cameras\"") != std::string::npos;
  EXPECT_EQ(lines, 1U) << "told once";
}

TEST(Recordings, WhatIsNoneIsRefusedInOneLine) {
  fs::create_directories(kMade);
  const fs::path path = kMade / "none.top";
  for (const char* text :
       {"", "hello\n", "{\"leat_recording\":99,\"names\":{}}\n{}\n", "{\"leat_recording\":1,\"names\":3}\n{}\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto recording = Recording::open(path.string());
    ASSERT_FALSE(recording.ok()) << text;
    EXPECT_EQ(recording.error().find('\n'), std::string::npos);
  }
  std::ofstream(path, std::ios::trunc) << RecordingText::head()
                                       << "{\"t\":1,\"w\":2,\"o\":0,\"r\":[[200,0,1,\"x\"]]}\n";
  auto recording = Recording::open(path.string());
  ASSERT_TRUE(recording.ok());
  EXPECT_FALSE(recording->next()) << "a record of no kind";
}

}  // namespace
}  // namespace leat::tools::top
