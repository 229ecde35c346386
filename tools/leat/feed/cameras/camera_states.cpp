#include "tools/leat/feed/cameras/camera_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "leat/leat.h"
#include "tools/base/text/fd.h"
#include "tools/base/text/whole_file.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kFreshNs = 10'000'000'000;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20, kMaxText = 300, kMaxFiles = 256;
constexpr int kVersion = 1;

std::string folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' ? std::string(runtime) + "/leat-feed"
                                                 : "/tmp/leat-feed-" + std::to_string(::geteuid());
}

// A folder of this user that nobody else may write into. No link: /tmp is everybody's.
bool own_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 022) == 0;
}

std::string whole_socket(const std::string& socket) {
  const std::string path = socket.empty() ? ::leat_default_socket() : socket;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? real.get() : path;
}

// What a terminal may be shown: control characters are question marks.
std::string shown(const Json& object, const char* key) {
  const Json* const value = object.find(key);
  if (value == nullptr || !value->is_string()) return {};
  std::string text = value->get<std::string>().substr(0, kMaxText);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}
Json number(const Json& object, const char* key) {
  const Json* const value = object.find(key);
  return value != nullptr && value->is_number() ? *value : Json(nullptr);
}

std::string read_own_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      info.st_size <= 0 || static_cast<std::size_t>(info.st_size) > kMaxBytes)
    return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

void add_cameras_of(const Json& file, const std::string& socket, std::int64_t now_ns, Json& out) {
  if (!file.is_object() || number(file, "v") != Json(kVersion) || shown(file, "socket") != socket) return;
  const Json written = number(file, "written_ns");
  if (written.is_null() || now_ns - written.get<std::int64_t>() > kFreshNs || written.get<std::int64_t>() > now_ns)
    return;
  const Json* const cameras = file.find("cameras");
  if (cameras == nullptr || !cameras->is_array()) return;
  for (const Json& camera : *cameras) {
    if (!camera.is_object() || shown(camera, "name").empty()) continue;
    Json entry = {{"pid", number(file, "pid")}};
    for (const char* const key : {"name", "source", "application", "state", "last_error"})
      entry[key] = shown(camera, key);
    for (const char* const key : {"rate", "pictures", "breaks", "time_steps", "damaged", "format_changes"})
      entry[key] = number(camera, key);
    const double since_s = static_cast<double>(now_ns - written.get<std::int64_t>()) / 1e9;
    for (const char* const key : {"last_picture_s", "last_error_s"}) {
      const Json then = number(camera, key);
      entry[key] = then.is_null() ? then : Json(std::round((then.get<double>() + since_s) * 10) / 10);
    }
    out.push_back(std::move(entry));
  }
}

Json seconds_ago(std::int64_t at_ns, std::int64_t now_ns) {
  return at_ns == 0 ? Json(nullptr) : Json(std::round(static_cast<double>(now_ns - at_ns) / 1e8) / 10);
}

}  // namespace

const char* name_of(CameraState state) {
#define X(name, text) #name,
  static constexpr const char* kNames[] = {LEAT_CAMERA_STATES(X)};
#undef X
  return kNames[static_cast<std::size_t>(state)];
}

Result<CameraStatesFile> CameraStatesFile::create(const std::string& socket) {
  const std::string where = folder();
  if (::mkdir(where.c_str(), 0700) != 0 && errno != EEXIST)
    return Error{"'" + where + "' cannot be made: " + std::strerror(errno)};
  if (!own_folder(where)) return Error{"'" + where + "' is not this user's alone; take it away"};
  return CameraStatesFile(where + "/" + std::to_string(::getpid()) + ".json", socket);
}

CameraStatesFile::CameraStatesFile(CameraStatesFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), socket_(std::move(other.socket_)) {}

CameraStatesFile::~CameraStatesFile() {
  if (!path_.empty()) (void)::unlink(path_.c_str());
}

Status CameraStatesFile::write(const std::vector<CameraReport>& cameras, std::int64_t now_ns) const {
  Json list = Json::array();
  for (const CameraReport& c : cameras)
    list.push_back({{"name", c.name},
                    {"source", c.source},
                    {"application", c.application},
                    {"state", name_of(c.state)},
                    {"rate", std::round(c.rate * 100) / 100},
                    {"last_picture_s", seconds_ago(c.last_picture_ns, now_ns)},
                    {"pictures", c.pictures},
                    {"breaks", c.breaks},
                    {"time_steps", c.time_steps},
                    {"damaged", c.damaged},
                    {"format_changes", c.format_changes},
                    {"last_error", c.last_error},
                    {"last_error_s", seconds_ago(c.last_error_ns, now_ns)}});
  const Json file = {{"v", kVersion},
                     {"pid", ::getpid()},
                     {"socket", whole_socket(socket_)},
                     {"written_ns", now_ns},
                     {"cameras", std::move(list)}};
  const std::string problem = text::write_whole_file(path_, file.dump() + "\n");
  return problem.empty() ? Status(Done{}) : Status(Error{problem});
}

Json read_camera_states(const std::string& socket) {
  Json out = Json::array();
  const std::string where = folder(), wanted = whole_socket(socket);
  if (!own_folder(where)) return out;
  struct Close {
    void operator()(DIR* entries) const { (void)::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(::opendir(where.c_str()));
  std::vector<std::string> names;
  while (entries != nullptr && names.size() < kMaxFiles) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (const std::string name = entry->d_name; name.ends_with(".json")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const std::int64_t now_ns = ::leat_now_ns();
  for (const std::string& name : names)
    if (const auto file = Json::try_parse(read_own_file(where + "/" + name)))
      add_cameras_of(*file, wanted, now_ns, out);
  return out;
}

std::string camera_states_text(const Json& cameras) {
  std::string out;
  const auto seconds = [](const Json& camera, const char* key) {
    const Json& value = camera[key];
    char text[32] = "never";
    if (value.is_number()) std::snprintf(text, sizeof text, "%.1f s ago", value.get<double>());
    return std::string(text);
  };
  for (const Json& camera : cameras) {
    char figures[64];
    std::snprintf(figures, sizeof figures, "%.1f pictures/s, ",
                  camera["rate"].is_number() ? camera["rate"].get<double>() : 0);
    out += "camera " + camera["name"].get<std::string>() + ": " + camera["state"].get<std::string>() + ", " + figures +
           "last picture " + seconds(camera, "last_picture_s");
    if (const Json& steps = camera["time_steps"]; steps.is_number() && steps.get<double>() > 0)
      out += "; its times stepped " + steps.dump() + " times";
    for (const auto& [key, what] : {std::pair{"damaged", " damaged pictures"}, {"format_changes", " format changes"}})
      if (const Json& n = camera[key]; n.is_integer() && n != Json(0)) out += ", " + n.dump() + what;
    if (const std::string error = camera["last_error"].get<std::string>(); !error.empty())
      out += "; broke off " + camera["breaks"].dump() + " times, last error " + seconds(camera, "last_error_s") + ": " +
             error;
    out += "\n";
  }
  return out;
}

}  // namespace leat::tools
