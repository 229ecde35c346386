// Counters that walk at random: the sentence does not flap, rows stand still, nothing unknown is shown as zero.
// LEAT_WALKS: how many walks (60 here; by hand it was ten thousand), LEAT_FIRST_WALK: the first one's number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/session.h"
#include "tools/leat/top/test/world.h"

namespace leat::tools::top {
namespace {

int number_in(const char* variable, int usual) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::max(1, std::atoi(text)) : usual;
}

// The row that is drawn as chosen; -1: none.
int chosen_row(const Canvas& canvas) {
  for (int row = 2; row + 1 < canvas.rows(); ++row)
    if (canvas.at(row, 2).stress == Stress::chosen && canvas.at(row, 40).stress == Stress::chosen) return row;
  return -1;
}

// Text and figures of the sentence, without what only tells how long it has been so.
std::string figures_of(const Sentence& s) { return std::string(name_of(s.state)) + s.text + s.word + s.reason; }

void unknown_is_not_zero(const Second& second, std::int64_t opened_at_least_ns) {
  for (const StreamFigures& s : second.streams) {
    if (s.who->opened_ns > opened_at_least_ns) {
      EXPECT_FALSE(known(s.in)) << s.who->name << ": a rate of a stream that has just begun";
      EXPECT_FALSE(known(s.miss)) << s.who->name;
    }
    if (!known(s.miss)) {
      EXPECT_TRUE(!known(s.good) || s.good + s.late + s.dropped + s.failed + s.rejected == 0);
    }
    // Nothing was answered in the window: how long it took is not known.
    if (known(s.good) && s.good == 0 && s.late == 0) {
      EXPECT_FALSE(known(s.p50)) << s.who->name;
    }
    EXPECT_FALSE(known(s.who->period_ms)) << "no period was declared";
  }
  for (const PartitionFigures& p : second.partitions)
    if (p.state != PartitionState::up) {
      EXPECT_FALSE(known(p.busy)) << p.name << " is not up";
    }
}

class Walk : public ::testing::Test {
 protected:
  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    test::World world(3 + static_cast<std::uint32_t>(random() % 9), 1 + static_cast<std::uint32_t>(random() % 3), seed);
    Session session;
    State before = State::watching;
    std::int64_t last_down_ns = 0, last_text_ns = 0;
    std::string last_text;
    int cursor_row = -1;
    const int seconds = 60 + static_cast<int>(random() % 60), rows = 18 + static_cast<int>(random() % 14);
    for (int t = 0; t < seconds; ++t) {
      world.walk();
      const bool gone = random() % 500 == 0;
      session.take(gone ? world.gone() : world.look());
      const Second& second = session.shown();
      const Sentence& s = second.sentence;
      if (s.state > before && before != State::no_leatd && before != State::watching) {
        EXPECT_GE(second.at_ns - last_down_ns, 5 * kSecondNs)
            << "seed " << seed << " second " << t << ": " << name_of(before) << " to " << name_of(s.state);
        last_down_ns = second.at_ns;
      }
      if (s.state == before && figures_of(s) != last_text && s.state != State::no_leatd) {
        EXPECT_GE(second.at_ns - last_text_ns, 5 * kSecondNs) << "seed " << seed << " second " << t << ": " << s.text;
        last_text_ns = second.at_ns;
      }
      if (s.state != before) last_text_ns = second.at_ns;
      before = s.state;
      last_text = figures_of(s);
      unknown_is_not_zero(second, second.at_ns - kSecondNs / 2);

      const Screen screen = session.screen(rows, 80);
      if (t == 20) {
        for (std::uint64_t i = 0; i <= random() % 4; ++i) (void)session.key(Action::down);
        cursor_row = chosen_row(session.screen(rows, 80).canvas);
        EXPECT_GE(cursor_row, 0) << "seed " << seed;
      } else if (t > 20 && cursor_row >= 0) {
        const bool there = session.view().stream && find(second, *session.view().stream) != nullptr;
        if (there) {
          EXPECT_EQ(chosen_row(screen.canvas), cursor_row) << "seed " << seed << " second " << t;
        }
        if (!there) cursor_row = -1;
      }
      if (HasFailure()) return;
    }
  }
};

TEST_F(Walk, TheSentenceDoesNotFlapAndRowsStandStill) {
  const int first = number_in("LEAT_FIRST_WALK", 1), end = first + number_in("LEAT_WALKS", 60);
  for (int seed = first; seed < end && !HasFailure(); ++seed) run(static_cast<std::uint64_t>(seed));
}

// ---- states, one by one ----

class States : public ::testing::Test {
 protected:
  State after(int seconds, const std::vector<test::Deed>& deeds = {}) {
    for (int i = 0; i < seconds; ++i) {
      world_.second(deeds);
      session_.take(world_.look());
    }
    return sentence().state;
  }
  const Sentence& sentence() { return session_.shown().sentence; }
  test::World world_{4, 2};
  Session session_;
};

TEST_F(States, WellAndWhatProvesIt) {
  EXPECT_EQ(after(2), State::watching);
  EXPECT_EQ(after(10), State::all_well);
  EXPECT_NE(sentence().text.find("no frame missed since leatd began 1 h"), std::string::npos) << sentence().text;
  EXPECT_EQ(sentence().word, "room");
}

TEST_F(States, AModelThatAnswersNoNumbersIsSaidWhileAllIsWell) {
  EXPECT_EQ(after(12), State::all_well);
  EXPECT_EQ(sentence().word, "room");
  world_.not_finite(1, 12);
  EXPECT_EQ(after(6), State::all_well);
  EXPECT_EQ(sentence().word + ": " + sentence().reason,
            "meanwhile: plates/read answered NaN or infinity 12 times in 60 s");
  EXPECT_EQ(after(90), State::all_well);
  EXPECT_EQ(sentence().word, "room");
}

TEST_F(States, OverloadComesAtOnceAndGoesAfterItsTime) {
  after(20);
  std::vector<test::Deed> deeds(4);
  deeds[1] = {.sent = 15, .dropped = 6};
  EXPECT_EQ(after(1, deeds), State::overload);
  EXPECT_NE(sentence().text.find("yard:0 loses frames"), std::string::npos) << sentence().text;
  after(10, deeds);
  EXPECT_EQ(after(15), State::overload) << "five seconds until none is in the window, fifteen without";
  EXPECT_EQ(after(12), State::all_well);
}

TEST_F(States, LateAndFailingAreTheirOwn) {
  after(20);
  std::vector<test::Deed> deeds(4);
  deeds[0] = {.sent = 15, .late = 5};
  EXPECT_EQ(after(2, deeds), State::late);
  deeds[2] = {.sent = 15, .failed = 5};
  EXPECT_EQ(after(2, deeds), State::failing);
  EXPECT_NE(sentence().text.find("partition_lost"), std::string::npos) << sentence().text;
  EXPECT_EQ(sentence().others, std::vector<State>{State::late});
}

TEST_F(States, WhatWasAskedForIsNotMissed) {
  after(20);
  std::vector<test::Deed> deeds(4);
  deeds[1] = {.sent = 15, .dropped = 6, .reason = Reason::cancelled};
  EXPECT_EQ(after(10, deeds), State::all_well);
  deeds[1] = {.sent = 100, .dropped = 5, .reason = Reason::superseded};
  EXPECT_EQ(after(10, deeds), State::all_well) << "the newest frame's rule lives by what it supersedes";
  deeds[1] = {.sent = 100, .dropped = 25, .reason = Reason::superseded};
  EXPECT_EQ(after(3, deeds), State::overload);
}

TEST_F(States, AWorkerThatIsLost) {
  after(20);
  world_.partition(1, 3);
  EXPECT_EQ(after(1), State::worker_down);
  EXPECT_NE(sentence().text.find("mig1"), std::string::npos) << sentence().text;
  EXPECT_EQ(sentence().word, "meanwhile");
  world_.partition(1, 1);
  EXPECT_EQ(after(2), State::worker_down);
  world_.partition(1, 2);
  EXPECT_EQ(after(8), State::worker_down) << "until it has been up for ten seconds";
  EXPECT_EQ(after(8), State::all_well);
}

TEST_F(States, ASilentStream) {
  after(70);
  std::vector<test::Deed> deeds(4);
  deeds[3].sent = 0;
  EXPECT_EQ(after(2, deeds), State::all_well);
  EXPECT_EQ(after(3, deeds), State::silent);
  EXPECT_NE(sentence().text.find("yard:1 sent nothing, before it 15/s"), std::string::npos) << sentence().text;
  after(10, deeds);
  EXPECT_EQ(sentence().state, State::silent);
  after(8);
  EXPECT_EQ(sentence().state, State::all_well);
}

TEST_F(States, NobodySends) {
  after(20);
  const std::vector<test::Deed> none(4, test::Deed{.sent = 0});
  after(20, none);
  EXPECT_EQ(sentence().state, State::idle);
}

TEST_F(States, RefusingAndGone) {
  after(20);
  world_.refuse();
  EXPECT_EQ(after(1), State::refusing);
  EXPECT_NE(sentence().text.find("user yard: memory"), std::string::npos) << sentence().text;
  world_.second();
  session_.take(world_.gone());
  EXPECT_EQ(sentence().state, State::no_leatd);
  EXPECT_EQ(session_.shown().streams.size(), 4U) << "all below is as it was";
  EXPECT_EQ(after(1), State::watching);
}

TEST_F(States, FirstLinesFitEightyColumns) {
  after(20);
  std::vector<test::Deed> deeds(4);
  for (auto& d : deeds) d = {.sent = 15, .dropped = 3};
  after(5, deeds);
  for (const int columns : {40, 60, 80, 120, 200}) {
    const Screen screen = session_.screen(24, columns);
    EXPECT_EQ(screen.canvas.columns(), columns);
    std::istringstream lines(screen.canvas.text());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), columns);
  }
}

// ---- cameras ----

TEST_F(States, ACameraThatIsAwayIsSaidWithItsError) {
  std::vector<CameraFigures> cameras(2);
  cameras[0] = {.name = "gate:0", .source = "rtsp://a", .application = "", .state = "running", .error = "", .rate = 15};
  cameras[1] = {.name = "porch", .source = "rtsp://b", .application = "", .state = "opening", .error = ""};
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      world_.second();
      Observation seen = world_.look();
      seen.cameras = cameras;
      session_.take(std::move(seen));
    }
    return sentence().state;
  };
  const auto shows = [&](const std::string& words) {
    return session_.screen(24, 80).canvas.text().find(words) != std::string::npos;
  };
  EXPECT_EQ(pass(8), State::all_well) << "one that is opened for the first time has a while for it";
  EXPECT_TRUE(shows("porch"));
  cameras[1].state = "waiting";
  cameras[1].breaks = 1;
  cameras[1].error = "'rtsp://b' cannot be opened: Connection refused";
  EXPECT_EQ(pass(1), State::silent);
  EXPECT_EQ(sentence().text, "porch has no pictures");
  EXPECT_EQ(sentence().reason, "porch cannot be opened: Connection refused");
  EXPECT_TRUE(shows("· porch")) << session_.screen(24, 80).canvas.text();
  EXPECT_EQ(session_.shown().streams.size(), 5U) << "a row of its own, though leatd has no stream of it";
  for (const Change& c : session_.facts().changes()) EXPECT_EQ(c.text.find("opened porch"), std::string::npos);
  // One that breaks off has its stream.
  cameras[0].state = "waiting";
  cameras[0].error = "'rtsp://a' ended";
  cameras[0].last_picture_ns = world_.now_ns();
  pass(6);
  EXPECT_EQ(sentence().text, "gate:0, porch have no pictures");
  for (const char c : std::string("/gate:0\n")) (void)session_.letter(static_cast<char32_t>(c));
  (void)session_.key(Action::look);
  EXPECT_TRUE(shows("camera waiting")) << session_.screen(24, 80).canvas.text();
  EXPECT_TRUE(shows("last error: ended"));
  (void)session_.key(Action::back);
  for (CameraFigures& c : cameras) c.state = "running";
  pass(6);
  EXPECT_EQ(sentence().state, State::all_well);
  cameras[1].state = "ended";
  pass(1);
  EXPECT_EQ(session_.shown().streams.size(), 4U);
}

TEST_F(States, LastFramesOneByOne) {
  after(10);
  world_.second();
  Observation seen = world_.look();
  for (const auto& [outcome, ms] : {std::pair{Outcome::completed, 10},
                                    {Outcome::completed, 95},
                                    {Outcome::dropped, 0},
                                    {Outcome::late, 120},
                                    {Outcome::failed, 0}}) {
    shm::Event e;
    e.stream = 1;
    e.kind = shm::EventKind::answered;
    e.a = static_cast<std::uint64_t>(outcome);
    e.c = static_cast<std::uint64_t>(ms) * 1'000'000;
    seen.events.push_back(e);
  }
  session_.take(std::move(seen));
  const auto look_at = [&](const char* name) {
    for (const StreamFigures& s : session_.shown().streams)
      if (s.who->name == name) session_.view().stream = s.who->key;
    session_.view().look = Look::stream;
    return session_.screen(24, 80).canvas.text();
  };
  const std::string text = look_at("yard:0");
  EXPECT_NE(text.find("LAST 5 FRAMES"), std::string::npos) << text;
  EXPECT_NE(text.find("\n ▁▇▼▲×\n"), std::string::npos) << text;
  EXPECT_EQ(look_at("yard:1").find("LAST"), std::string::npos) << "of it nobody knows";
}

// ---- rows ----

TEST_F(States, WhoSuffersComesFirstAndTheRestIsOneRow) {
  test::World world(24, 2);
  Session session;
  std::vector<test::Deed> deeds(24);
  for (int i = 0; i < 30; ++i) {
    if (i > 10) deeds[7] = {.sent = 15, .dropped = 6};
    world.second(deeds);
    session.take(world.look());
  }
  const std::string text = session.screen(24, 80).canvas.text();
  const auto worst = text.find("▼ yard:3"), well = text.find("▸ 23 well");
  ASSERT_NE(worst, std::string::npos) << text;
  ASSERT_NE(well, std::string::npos) << text;
  EXPECT_LT(worst, well);
  EXPECT_NE(text.find("overload", worst), std::string::npos) << "and why";
}

TEST(Backfill, OfTheFlightRecorderIsBeforeTheFirstLook) {
  test::World world(2, 1);
  world.second();
  Observation seen = world.look();
  for (int i = 0; i < 300; ++i) {
    shm::Event e;
    e.at_ns = world.now_ns() - 10 * kSecondNs + i * kSecondNs / 30;
    e.stream = 1;
    e.kind = shm::EventKind::submitted;
    seen.events.push_back(e);
    e.kind = shm::EventKind::answered;
    e.a = static_cast<std::uint64_t>(i % 3 == 0 ? Outcome::dropped : Outcome::completed);
    e.b = static_cast<std::uint64_t>(i % 3 == 0 ? Reason::overload : Reason::none);
    e.c = 20'000'000;
    seen.events.push_back(e);
  }
  Session session;
  session.take(std::move(seen));
  const auto& seconds = session.facts().seconds();
  ASSERT_EQ(seconds.size(), 11U) << "ten seconds of events, and the look";
  EXPECT_NEAR(seconds[4].total.came, 30, 1);
  EXPECT_NEAR(seconds[4].total.miss, 33, 3);
  EXPECT_NEAR(seconds[4].total.p50, 20, 0.1);
  EXPECT_FALSE(known(seconds[4].total.p99_minute));
  EXPECT_TRUE(seconds[4].partitions.empty()) << "nobody knows how full they were";
  EXPECT_EQ(session.shown().sentence.state, State::watching) << "and it says nothing of now";
}

TEST(Keys, FindFilterLookAndTime) {
  test::World world(24, 2);
  Session session;
  for (int i = 0; i < 40; ++i) {
    world.second();
    session.take(world.look());
  }
  const auto shows = [&](const std::string& words) {
    return session.screen(24, 80).canvas.text().find(words) != std::string::npos;
  };
  (void)session.screen(24, 80);
  for (const char c : std::string("/yard:11\n")) (void)session.letter(static_cast<char32_t>(c));
  ASSERT_TRUE(session.view().stream);
  EXPECT_EQ(find(session.shown(), *session.view().stream)->who->name, "yard:11");
  (void)session.key(Action::look);
  if (session.view().look == Look::none) (void)session.key(Action::look);  // the first opened the row of the well
  EXPECT_EQ(session.view().look, Look::stream);
  EXPECT_TRUE(shows("CAPTURE TO ANSWER"));
  EXPECT_TRUE(shows("yard:11 plates"));
  (void)session.key(Action::back);
  for (const char c : std::string("\\gate:1 miss<5\n")) (void)session.letter(static_cast<char32_t>(c));
  EXPECT_TRUE(shows("gate:10"));
  EXPECT_FALSE(shows("yard:11 "));
  for (const char c : std::string("\\miss=5\n")) (void)session.letter(static_cast<char32_t>(c));
  EXPECT_TRUE(shows("is no filter")) << "the former one is kept, and the words are told";
  EXPECT_FALSE(shows("yard:11 "));
  (void)session.key(Action::much_earlier);
  EXPECT_TRUE(session.stopped());
  EXPECT_TRUE(shows("10 s ago"));
  (void)session.key(Action::newest);
  EXPECT_FALSE(session.stopped());
  EXPECT_TRUE(session.letter(U'q').quit);
  for (std::size_t page = 0; page < kPages; ++page) {
    (void)session.letter(static_cast<char32_t>('1' + page));
    EXPECT_EQ(session.view().page, static_cast<Page>(page));
    EXPECT_FALSE(shows("nan"));
  }
}

TEST(Keys, AClickOnARowChoosesItAndAgainLooks) {
  test::World world(4, 2);
  Session session;
  for (int i = 0; i < 20; ++i) {
    world.second();
    session.take(world.look());
  }
  const Screen screen = session.screen(24, 80);
  const auto row =
      std::find_if(screen.hits.begin(), screen.hits.end(), [](const Hit& h) { return h.what == Hit::What::row; });
  ASSERT_NE(row, screen.hits.end());
  (void)session.click_on(row->row, row->from + 3);
  EXPECT_EQ(session.view().stream, row->key);
  (void)session.click_on(row->row, row->from + 3);
  EXPECT_EQ(session.view().look, Look::stream);
}

TEST(Pages, HaveTheSizeAskedForAndTheSameCellsInAscii) {
  test::World world(30, 5);
  world.open(3);
  Session session;
  for (int i = 0; i < 20; ++i) {
    world.walk();
    session.take(world.look());
  }
  for (std::size_t page = 0; page < kPages; ++page) {
    session.view().page = static_cast<Page>(page);
    for (int rows = 1; rows <= 60; rows += 7) {
      for (int columns = 1; columns <= 220; columns += 19) {
        Screen screen = session.screen(rows, columns);
        ASSERT_EQ(screen.canvas.rows(), rows);
        ASSERT_EQ(screen.canvas.columns(), columns);
        Canvas ascii = screen.canvas;
        ascii.to_ascii();
        for (const char c : ascii.text()) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
        ASSERT_EQ(ascii.meanings(), screen.canvas.meanings());
      }
    }
  }
}

// Printed, not judged: what it costs is the processor's.
TEST(Pages, CostOfAScreenWithTwoHundredStreams) {
  test::World world(200, 4);
  Session session;
  timespec before{}, after{};
  const auto cpu_ms = [&] {
    return static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 +
           static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e6;
  };
  double take_ms = 0;
  constexpr int kSeconds = 40;
  for (int i = 0; i < kSeconds; ++i) {
    world.walk();
    Observation seen = world.look();
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    session.take(std::move(seen));
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    take_ms += cpu_ms();
  }
  for (const auto& [columns, rows] : {std::pair{80, 24}, {120, 40}, {200, 60}}) {
    constexpr int kScreens = 20;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    for (int i = 0; i < kScreens; ++i) (void)session.screen(rows, columns);
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    std::printf("%dx%d with 200 streams: %.2f ms of CPU a screen\n", columns, rows, cpu_ms() / kScreens);
  }
  std::printf("a second's figures of 200 streams: %.2f ms of CPU\n", take_ms / kSeconds);
}

TEST(Pages, AClientsNameCannotSpeakToTheTerminal) {
  test::World world(2, 1);
  Session session;
  for (int i = 0; i < 12; ++i) {
    world.second();
    Observation seen = world.look();
    seen.sample.streams[0].label = "e\033[2J\xc2\x9b\n\xff\u202e漢字:0 plates";
    session.take(std::move(seen));
  }
  const Screen screen = session.screen(24, 80);
  bool wide = false;
  for (int row = 0; row < 24; ++row)
    for (int column = 0; column < 80; ++column) {
      const char32_t sign = screen.canvas.at(row, column).sign;
      EXPECT_TRUE(sign == 0 || columns_of(sign) > 0) << row << " " << column;
      wide = wide || sign == U'漢';
    }
  EXPECT_TRUE(wide) << "letters of two columns pass";
}

TEST(Text, ThreeDigitsAndNothingRoundedAway) {
  EXPECT_EQ(three(kUnknownFigure), "-");
  EXPECT_EQ(three(0), "0");
  EXPECT_EQ(three(0.001), "<0.01");
  EXPECT_EQ(three(0.07), "0.07");
  EXPECT_EQ(three(9.996), "10.0");
  EXPECT_EQ(three(99.96), "100");
  EXPECT_EQ(three(1750), "1.75k");
  EXPECT_EQ(three(17'900), "17.9k");
  EXPECT_EQ(percent(0.3), "<1");
  EXPECT_EQ(percent(99.7), ">99");
  EXPECT_EQ(two(119.6), "120");
  EXPECT_EQ(span_of(7'460 * kSecondNs), "2 h 4 min");
  EXPECT_EQ(names_together({"mig1", "mig0", "mig2"}), "mig0-2");
  EXPECT_EQ(names_together({"mig0", "mig2", "mig3"}), "mig0, 2, 3");
  EXPECT_EQ(names_together({"gate:10", "gate:9", "yard:1"}), "gate:9, gate:10, yard:1");
  EXPECT_TRUE(natural_less("gate:9", "gate:10"));
  EXPECT_EQ(clock_of(0, 3600), "01:00:00");
}

}  // namespace
}  // namespace leat::tools::top
