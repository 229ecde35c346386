// Cameras that cannot be opened, break off, stall and send nonsense, beside others that must not notice.
#include "tools/leat/feed/cameras/camera.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "shm/test/loopback_daemon.h"
#include "tools/base/text/fd.h"
#include "tools/leat/feed/cameras/camera_list.h"
#include "tools/leat/feed/cameras/camera_states.h"

namespace leat::tools {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

template <class Condition>
bool eventually(const Condition& condition, std::chrono::milliseconds patience = 30'000ms) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// A camera on loopback: raw video (y4m) over TCP to whoever connects, for as long as it is well.
class FakeCamera {
 public:
  enum class Mode : std::uint8_t { well, absent, breaks, stalls, nonsense, film, lags };
  explicit FakeCamera(Mode mode, std::chrono::milliseconds period = 50ms) : mode_(mode), period_(period) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    url_ = "tcp://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~FakeCamera() {
    end_ = true;
    thread_.join();
  }
  void be(Mode mode) { mode_ = mode; }
  const std::string& url() const { return url_; }
  std::uint64_t connections() const { return connections_; }

 private:
  void run() {
    while (!end_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer || mode_ == Mode::absent) continue;  // it hangs up before it has said anything
      ++connections_;
      serve(peer.get());
    }
  }
  void serve(int peer) {
    const std::string head = "YUV4MPEG2 W64 H32 F20:1 Ip A1:1 C420jpeg\n",
                      picture = "FRAME\n" + std::string(64 * 32 * 3 / 2, 'p');
    const auto send = [&](const std::string& text) {
      return ::send(peer, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
    };
    if (mode_ == Mode::nonsense) {
      while (!end_ && mode_ == Mode::nonsense && send(std::string(1 << 16, 'x'))) std::this_thread::sleep_for(1ms);
      return;
    }
    if (mode_ == Mode::film) {  // of three pictures, over HTTP, from its beginning alone
      char request[4096];
      (void)::recv(peer, request, sizeof request, 0);
      const std::string film = head + picture + picture + picture;
      (void)send("HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(film.size()) + "\r\n\r\n" + film);
      return;
    }
    if (!send(head)) return;
    std::chrono::steady_clock::time_point next;
    for (int sent = 0; !end_ && mode_ != Mode::absent && mode_ != Mode::nonsense; ++sent) {
      if (mode_ == Mode::breaks && sent >= 3) return;
      if (mode_ != Mode::stalls && !send(picture)) return;
      if (mode_ == Mode::stalls && hung_up(peer)) return;
      // It falls three seconds behind, and makes that good by a fifth of the time that passes, also on a busy host.
      if (mode_ == Mode::lags && sent >= 10) {
        next = sent == 10 ? std::chrono::steady_clock::now() + 3'000ms : next + period_ * 4 / 5;
        std::this_thread::sleep_until(next);
      } else {
        std::this_thread::sleep_for(period_);
      }
    }
  }
  static bool hung_up(int peer) {
    char c = 0;
    return ::recv(peer, &c, 1, MSG_DONTWAIT) == 0;
  }

  std::atomic<Mode> mode_;
  const std::chrono::milliseconds period_;
  std::string url_;
  Fd listener_;
  std::atomic<bool> end_{false};
  std::atomic<std::uint64_t> connections_{0};
  std::thread thread_;
};

class Cameras : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/leat-cameras-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    daemon_options_.socket = folder_ + "/leat.sock";
    connection_ = std::make_unique<Connection>(daemon_options_.socket, "house");
  }
  void TearDown() override {
    connection_.reset();
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }
  void serve() {
    daemon_ = std::make_unique<shm::test::LoopbackDaemon>(daemon_options_);
    ASSERT_EQ(daemon_->problem(), "");
  }
  FeederOptions options(const std::string& name, const std::string& url) const {
    FeederOptions o;
    o.name = name;
    o.source = url;
    o.application = "echo";
    o.connection = connection_.get();
    o.stays = true;
    o.slo_ns = 20'000'000'000;  // nothing is late, however busy the machine
    o.stall_ns = 600'000'000;
    return o;
  }
  static std::uint64_t completed(const Camera& camera) {
    return camera.figures().front().ledger.count(Outcome::completed);
  }
  std::string folder_;
  shm::test::LoopbackDaemon::Options daemon_options_;
  std::unique_ptr<shm::test::LoopbackDaemon> daemon_;
  std::unique_ptr<Connection> connection_;
};

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// 24 of them: four that cannot be opened at first, four that break off and come back, one that stalls, one that sends
// nonsense, while leatd ends and starts twice.
TEST_F(Cameras, BrokenOnesComeBackAndTheOthersDoNotNotice) {
  using Mode = FakeCamera::Mode;
  serve();
  constexpr std::size_t kAbsent = 4, kBreak = 8, kStall = 9, kNonsense = 10, kAll = 24;  // each up to its number
  std::vector<std::unique_ptr<FakeCamera>> fakes;
  std::vector<std::unique_ptr<Camera>> cameras;
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto say = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  for (std::size_t i = 0; i < kAll; ++i) {
    fakes.push_back(std::make_unique<FakeCamera>(i < kAbsent                    ? Mode::absent
                                                 : i >= kStall && i < kNonsense ? Mode::nonsense
                                                                                : Mode::well));
    FeederOptions o = options("camera " + std::to_string(i), fakes.back()->url());
    if (i >= kNonsense)
      o.stall_ns = 30'000'000'000;  // they are always well, and a busy machine may hold up their threads
    cameras.push_back(std::make_unique<Camera>(std::move(o), true, say,
                                               CameraPauses{.first_ns = 50'000'000, .longest_ns = 400'000'000}));
    cameras.back()->start(::leat_now_ns());
  }
  const auto grows = [&](std::size_t from) {
    std::vector<std::uint64_t> before;
    for (const auto& camera : cameras) before.push_back(completed(*camera));
    return eventually([&] {
      for (std::size_t i = from; i < kAll; ++i)
        if (completed(*cameras[i]) < before[i] + 3) return false;
      return true;
    });
  };
  ASSERT_TRUE(grows(kNonsense));
  for (std::size_t i = kAbsent; i < kBreak; ++i) fakes[i]->be(Mode::breaks);
  fakes[kBreak]->be(Mode::stalls);
  for (int restart = 0; restart < 2; ++restart) {
    daemon_.reset();
    const std::uint64_t pictures = cameras.back()->feeder().pictures();
    ASSERT_TRUE(eventually([&] { return cameras.back()->feeder().pictures() >= pictures + 2; }))
        << "while leatd is away";
    serve();
    ASSERT_TRUE(grows(kNonsense));
  }
  ASSERT_TRUE(eventually([&] {
    for (std::size_t i = 0; i < kNonsense; ++i)
      if (cameras[i]->report(::leat_now_ns()).breaks < 2) return false;
    return true;
  }));
  EXPECT_THAT(cameras[0]->report(::leat_now_ns()).last_error, HasSubstr(fakes[0]->url()));
  EXPECT_THAT(cameras[kBreak]->report(::leat_now_ns()).last_error, HasSubstr("gave no picture for"));

  for (const auto& fake : fakes) fake->be(Mode::well);
  const auto well = std::chrono::steady_clock::now();
  ASSERT_TRUE(grows(0));
  std::printf("all served %.1f s after the last was well\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - well).count());
  EXPECT_EQ(connection_->links(), 1U);
  EXPECT_EQ(daemon_->clients(), 1U);
  for (const auto& camera : cameras) camera->stop();
  for (const auto& camera : cameras) camera->join();
  for (std::size_t i = 0; i < kAll; ++i) {
    const Ledger ledger = cameras[i]->figures().front().ledger;
    EXPECT_EQ(ledger.in_flight(), 0U);
    EXPECT_EQ(ledger.submitted_count(), ledger.count(Outcome::completed) + ledger.unanswered_count());
    if (i < kNonsense) continue;
    EXPECT_EQ(cameras[i]->report(::leat_now_ns()).breaks, 0U) << i;
    EXPECT_EQ(fakes[i]->connections(), 1U) << i;
    // What came while its stream was being opened again comes at once, and may find no slot.
    EXPECT_EQ(ledger.skipped_count(), ledger.skipped_count(Skip::no_daemon) + ledger.skipped_count(Skip::no_slot))
        << "nothing but the restarts' pictures; not wanted " << ledger.skipped_count(Skip::not_wanted) << ", hopeless "
        << ledger.skipped_count(Skip::hopeless) << ", passed over " << ledger.skipped_count(Skip::passed_over);
  }
  EXPECT_EQ(daemon_->violations(), 0U);
  EXPECT_FALSE(lines.empty());
}

// What it sends is three seconds old and stays too old for long, though it comes: it is opened again as if nothing
// came.
TEST_F(Cameras, PicturesThatAreAllTooOldAreNoSignOfLife) {
  serve();
  FakeCamera fake(FakeCamera::Mode::lags);
  FeederOptions o = options("yard", fake.url());
  o.slo_ns = 200'000'000;
  o.stall_ns = 8'000'000'000;  // three of silence, two until it counts as late, and time to see that
  Camera camera(std::move(o), true, [](const std::string&) {});
  camera.start(::leat_now_ns());
  ASSERT_TRUE(eventually([&] { return camera.report(::leat_now_ns()).state == CameraState::late; }));
  const std::uint64_t pictures = camera.feeder().pictures();
  EXPECT_LT(pictures, 40U) << "the ten of the beginning, and who was in time by chance";
  EXPECT_GT(camera.figures().front().ledger.skipped_count(Skip::hopeless), 10U);
  ASSERT_TRUE(eventually([&] { return camera.report(::leat_now_ns()).breaks > 0; }));
  EXPECT_THAT(camera.report(::leat_now_ns()).last_error, HasSubstr("gave no picture in time for 8 s"));
  fake.be(FakeCamera::Mode::well);
  EXPECT_TRUE(eventually([&] { return camera.feeder().pictures() >= pictures + 5; }));
  EXPECT_EQ(camera.report(::leat_now_ns()).state, CameraState::running);
}

TEST_F(Cameras, AFilmOfAServerBeginsAgainWithLoop) {
  serve();
  FakeCamera fake(FakeCamera::Mode::film);
  FeederOptions o = options("film", "http" + fake.url().substr(3) + "/film.y4m");
  o.loop = o.realtime = true;
  std::atomic<int> lines{0};
  Camera camera(std::move(o), true, [&](const std::string&) { ++lines; });
  camera.start(::leat_now_ns());
  EXPECT_TRUE(eventually([&] { return camera.feeder().pictures() >= 12; }))
      << camera.report(::leat_now_ns()).last_error;
  EXPECT_EQ(camera.report(::leat_now_ns()).breaks, 0U) << camera.report(::leat_now_ns()).last_error;
  camera.stop();
  camera.join();
  EXPECT_EQ(lines, 1) << "its rounds are no news";
}

// LEAT_BREAKS says how many; by hand it was a thousand.
TEST_F(Cameras, ManyBreaksLeaveNothingBehind) {
  serve();
  const char* const asked = std::getenv("LEAT_BREAKS");
  const std::uint64_t breaks = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 60;
  FakeCamera fake(FakeCamera::Mode::breaks, 1ms);
  Camera camera(options("yard", fake.url()), true, [](const std::string&) {},
                {.first_ns = 1'000'000, .longest_ns = 1'000'000});
  camera.start(::leat_now_ns());
  const auto broke = [&](std::uint64_t n) {
    return eventually([&] { return camera.report(::leat_now_ns()).breaks >= n; }, 300'000ms);
  };
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages >> pages;
    return pages * 4096 / 1024;
  };
  ASSERT_TRUE(broke(breaks / 3));
  const std::size_t descriptors = open_descriptors(), kib = resident();
  ASSERT_TRUE(broke(breaks));
  std::printf("%zu KiB after a third of %llu breaks, %zu at their end\n", kib, static_cast<unsigned long long>(breaks),
              resident());
  camera.stop();
  camera.join();
  EXPECT_LE(open_descriptors(), descriptors + 2) << "it may be open at one look and not at the other";
  EXPECT_LE(resident(), kib + 8192);
  EXPECT_EQ(connection_->links(), 1U);
  EXPECT_GT(completed(camera), breaks);
}

TEST_F(Cameras, SixtyFourGoOverOneConnectionAndMoreOverAnother) {
  serve();
  {
    std::ofstream file(folder_ + "/pictures.nv12", std::ios::binary);
    file << std::string(3 * raw_layout(LEAT_FORMAT_nv12, 32, 16).bytes, 'p');
  }
  CameraList cameras([](const std::string& line) { ADD_FAILURE() << line; });
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      FeederOptions o = options("camera " + std::to_string(i), folder_ + "/pictures.nv12");
      o.source_options = {.raw_format = "nv12", .width = 32, .height = 16, .rate = 20};
      o.realtime = o.loop = true;
      o.stall_ns = 0;
      o.max_pictures = 8;
      const Status opened = cameras.add(o, false).open();
      ASSERT_TRUE(opened.ok()) << opened.error();
    }
  };
  add(64);
  EXPECT_EQ(connection_->links(), 1U);
  add(4);
  EXPECT_EQ(connection_->links(), 2U);
  cameras.start(::leat_now_ns());
  ASSERT_TRUE(eventually([&] { return cameras.ended(); }));
  const FeedReport report = cameras.report();
  ASSERT_EQ(report.streams.size(), 68U);
  for (const NamedLedger& stream : report.streams)
    EXPECT_EQ(stream.ledger.count(Outcome::completed), 8U) << stream.name;
}

TEST_F(Cameras, AFileThatChangesTouchesOnlyWhatItChanges) {
  serve();
  FakeCamera fakes[] = {FakeCamera(FakeCamera::Mode::well), FakeCamera(FakeCamera::Mode::well),
                        FakeCamera(FakeCamera::Mode::well)};
  const auto file = [&](const std::string& text) {
    std::string whole = text;
    for (int i = 0; i < 3; ++i) {
      const std::string place = "URL" + std::to_string(i);
      for (std::size_t at; (at = whole.find(place)) != std::string::npos;) whole.replace(at, 4, fakes[i].url());
    }
    auto cameras = parse_cameras("house.toml", whole);
    EXPECT_TRUE(cameras.ok()) << cameras.error();
    return *cameras;
  };
  CameraList cameras([](const std::string&) {});
  FeederOptions all = options("", "");
  all.stall_ns = 60'000'000'000;  // they are well, and a busy machine may hold up their threads
  EXPECT_EQ(
      cameras.apply(file("[[camera]]\nname = \"a\"\nurl = \"URL0\"\n[[camera]]\nname = \"b\"\nurl = \"URL1\"\n"), all),
      "2 added, 0 removed, 0 changed, 0 as they were");
  cameras.start(::leat_now_ns());
  const auto completed_of = [&](const std::string& name) {
    for (const NamedLedger& stream : cameras.report().streams)
      if (stream.name == name) return stream.ledger.count(Outcome::completed);
    return std::uint64_t{0};
  };
  ASSERT_TRUE(eventually([&] { return completed_of("a") > 2 && completed_of("b") > 2; }));
  EXPECT_EQ(cameras.apply(file("[[camera]]\nname = \"a\"\nurl = \"URL0\"\n"
                               "[[camera]]\nname = \"b\"\nurl = \"URL1\"\npriority = \"high\"\n"
                               "[[camera]]\nname = \"c\"\nurl = \"URL2\"\n"),
                          all),
            "1 added, 0 removed, 1 changed, 1 as they were");
  cameras.start(::leat_now_ns());
  ASSERT_TRUE(eventually([&] { return completed_of("b") > 2 && completed_of("c") > 2; }));
  EXPECT_EQ(cameras.apply(file("[[camera]]\nname = \"a\"\nurl = \"URL0\"\n"), all),
            "0 added, 2 removed, 0 changed, 1 as they were");
  EXPECT_EQ(fakes[0].connections(), 1U);
  EXPECT_EQ(fakes[1].connections(), 2U);
  cameras.end();
  const FeedReport report = cameras.report();
  ASSERT_EQ(report.streams.size(), 2U);
  EXPECT_EQ(report.streams[1].name, "removed cameras");
  EXPECT_GT(report.streams[1].ledger.count(Outcome::completed), 6U);
}

TEST(CamerasFile, SaysWhatIsWrongInOneLine) {
  const auto error = [](const std::string& text) {
    const auto read = parse_cameras("house.toml", text);
    EXPECT_FALSE(read.ok());
    return read.ok() ? std::string() : read.error();
  };
  EXPECT_THAT(error(""), HasSubstr("no [[camera]]"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\n"), HasSubstr("url"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\nurl = \"rtsp://x\"\npriorty = \"high\"\n"), HasSubstr("house.toml:4"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\nurl = \"rtsp://x\"\ntransport = \"pigeon\"\n"), HasSubstr("tcp"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\nurl = \"x\"\n[[camera]]\nname = \"a\"\nurl = \"y\"\n"),
              HasSubstr("another camera's name"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\nurl = \"x\"\ntasks = [\"all\"]\n"), HasSubstr("accuracy"));
  EXPECT_THAT(error("[[camera]]\nname = \"a\"\nurl = \"x\"\ncolor_range = \"tv\"\n"), HasSubstr("limited"));
  EXPECT_THAT(error("[camera"), HasSubstr("house.toml:1"));
  std::string umlauts;  // two bytes each
  for (int i = 0; i < 15; ++i) umlauts += "\xc3\xbc";
  const auto named = [](const std::string& name) { return "[[camera]]\nname = \"" + name + "\"\nurl = \"x\"\n"; };
  EXPECT_TRUE(parse_cameras("house.toml", named(umlauts)).ok());
  EXPECT_THAT(error(named(umlauts + "\xc3\xbc")), HasSubstr("has 32 bytes, at most 31"));
}

TEST(CamerasFile, SaysColorsAndWhatBecomesOfDamagedPictures) {
  const auto read = parse_cameras("house.toml",
                                  "[[camera]]\nname = \"a\"\nurl = \"x\"\ncolor_range = \"full\"\n"
                                  "color_matrix = \"bt2020\"\ndamaged = \"drop\"\n"
                                  "[[camera]]\nname = \"b\"\nurl = \"y\"\ncolor_range = \"auto\"\n");
  ASSERT_TRUE(read.ok()) << read.error();
  FeederOptions all;
  all.source_options.color = {LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt709};
  const auto a = options_of((*read)[0], all), b = options_of((*read)[1], all);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->source_options.color, (shm::Color{LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt2020}));
  EXPECT_EQ(a->damaged, DamagedPictures::drop);
  EXPECT_EQ(b->source_options.color, (shm::Color{LEAT_COLOR_RANGE_unspecified, LEAT_COLOR_MATRIX_bt709}));
  EXPECT_EQ(b->damaged, DamagedPictures::mark);
}

TEST_F(Cameras, StatesAreTheirUsersAloneAndNonsenseIsLeftOut) {
  const std::string folder = folder_ + "/leat-feed";
  auto file = CameraStatesFile::create("/run/leat-test.sock");
  ASSERT_TRUE(file.ok()) << file.error();
  const std::int64_t now_ns = ::leat_now_ns();
  CameraReport report{
      .name = "yard\x1b[2J", .source = shown_name("rtsp://me:secret@camera/main"), .application = "", .last_error = ""};
  report.state = CameraState::waiting;
  report.last_error = "it is gone";
  report.last_error_ns = report.last_picture_ns = now_ns - 2'000'000'000;
  report.time_steps = 3;
  report.damaged = 12, report.format_changes = 1;
  ASSERT_TRUE(file->write({report}, now_ns).ok());
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  write("1.json", "no JSON");
  write("2.json", R"({"v": 1, "socket": "/run/leat-test.sock", "written_ns": "soon", "cameras": [{"name": "x"}]})");
  write("3.json", R"({"v": 1, "socket": "/run/leat-test.sock", "written_ns": 1, "cameras": [{"name": "old"}]})");
  write("4.json", R"({"v": 1, "socket": "/run/leat-test.sock", "written_ns": )" + std::to_string(now_ns) +
                      R"(, "cameras": [7, {"name": 3}, {"name": "odd", "rate": "fast", "last_error": {}}]})");
  std::filesystem::create_symlink("/etc/passwd", folder + "/5.json");
  const Json states = read_camera_states("/run/leat-test.sock");
  ASSERT_EQ(states.size(), 2U);
  const std::string text = camera_states_text(states);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("camera yard?[2J: waiting"));
  EXPECT_THAT(text, HasSubstr("it is gone"));
  EXPECT_THAT(text, HasSubstr("its times stepped 3 times"));
  const bool odd_first = states[0]["name"] == "odd";  // files are read in the order of their names, which are numbers
  EXPECT_EQ(states[odd_first ? 1 : 0]["time_steps"], 3);
  EXPECT_TRUE(states[odd_first ? 0 : 1]["time_steps"].is_null());
  EXPECT_THAT(text, HasSubstr("12 damaged pictures, 1 format changes"));
  EXPECT_THAT(text, HasSubstr("camera odd: "));
  EXPECT_EQ(states.dump().find("secret"), std::string::npos);
  EXPECT_TRUE(read_camera_states("/run/another.sock").empty());
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  EXPECT_TRUE(read_camera_states("/run/leat-test.sock").empty()) << "anybody could have written there";
}

}  // namespace
}  // namespace leat::tools
