// hold BAR ... [--unless BAR] -- PROGRAM ARGUMENT ...: runs a program that prints one JSON object and holds its figures
// to bars, so that a test of a benchmark can fail on what it measures.
//
// BAR: KEY<=NUMBER, KEY>=NUMBER, or KEY==VALUE (JSON). KEY: names, or places in a list, joined by dots, '*' for every
// one of a level; each that it finds must keep the bar, and it must find one. Exit status: 0 all are kept; 1 one is
// not, or the program failed; 77 a figure is null (the program could not measure it here), or a bar is missed and the
// one behind --unless is kept (the program says itself that it was disturbed).
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/base/json/json.h"

namespace {

using leat::Json;

constexpr int kKept = 0, kMissed = 1, kUnknown = 77;

struct Bar {
  std::string text, key;
  char sense = '=';  // '<', '>', '='
  Json value;
};

[[noreturn]] void die(const std::string& text) {
  std::fprintf(stderr, "hold: %s\n", text.c_str());
  std::exit(kMissed);
}

Bar parse(const std::string& text) {
  for (const char* const sign : {"<=", ">=", "=="}) {
    const auto at = text.find(sign);
    if (at == std::string::npos) continue;
    auto value = Json::try_parse(text.substr(at + 2));
    if (!value) break;
    return {text, text.substr(0, at), sign[0], *std::move(value)};
  }
  die("'" + text + "' is no bar; write KEY<=NUMBER, KEY>=NUMBER or KEY==VALUE");
}

// Every value that the key finds.
void find(const Json& in, const std::string& key, std::vector<const Json*>& out) {
  if (key.empty()) return out.push_back(&in);
  const auto dot = key.find('.');
  const std::string name = key.substr(0, dot), rest = dot == std::string::npos ? "" : key.substr(dot + 1);
  if (name == "*") {
    if (in.is_array())
      for (const Json& each : in) find(each, rest, out);
    if (in.is_object())
      for (const auto& [each, value] : in.items()) find(value, rest, out);
  } else if (in.is_array() && name.find_first_not_of("0123456789") == std::string::npos) {
    if (const std::size_t at = std::stoul(name); at < in.size()) find(in.at(at), rest, out);
  } else if (in.is_object() && in.contains(name)) {
    find(in.at(name), rest, out);
  }
}

int judge(const Bar& bar, const Json& figures, bool say) {
  std::vector<const Json*> found;
  find(figures, bar.key, found);
  int worst = found.empty() ? kMissed : kKept;
  if (found.empty() && say) std::printf("hold: MISSED %s: there is no such figure\n", bar.text.c_str());
  for (const Json* const figure : found) {
    int verdict = kMissed;
    if (figure->is_null())
      verdict = kUnknown;
    else if (bar.sense == '=')
      verdict = *figure == bar.value ? kKept : kMissed;
    else if (figure->is_number())
      verdict = (bar.sense == '<' ? figure->get<double>() <= bar.value.get<double>()
                                  : figure->get<double>() >= bar.value.get<double>())
                    ? kKept
                    : kMissed;
    if (say)
      std::printf("hold: %s %s: %s\n",
                  verdict == kKept     ? "kept"
                  : verdict == kMissed ? "MISSED"
                                       : "UNKNOWN",
                  bar.text.c_str(), figure->dump().c_str());
    if (verdict == kMissed || worst == kKept) worst = verdict;
  }
  return worst;
}

// Runs it and returns what it printed; the reader of its words is the shell.
std::string output_of(char** words, int* status) {
  std::string line;
  for (; *words != nullptr; ++words) {
    line += "'";
    for (const char* c = *words; *c != 0; ++c) line += *c == '\'' ? std::string("'\\''") : std::string(1, *c);
    line += "' ";
  }
  FILE* const pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) die("cannot start " + line);
  std::string text;
  char piece[4096];
  for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, n);
  *status = pclose(pipe);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Bar> bars, excuses;
  int i = 1;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    const bool excuse = std::string(argv[i]) == "--unless" && i + 1 < argc;
    if (excuse) ++i;
    (excuse ? excuses : bars).push_back(parse(argv[i]));
  }
  if (bars.empty() || i + 1 >= argc) die("usage: hold BAR ... [--unless BAR] -- PROGRAM ARGUMENT ...");
  int status = 0;
  const std::string text = output_of(argv + i + 1, &status);
  std::printf("%s", text.c_str());
  if (status != 0)
    die(std::string(argv[i + 1]) + " failed with " +
        (WIFEXITED(status) ? "status " + std::to_string(WEXITSTATUS(status)) : "a signal"));
  const auto figures = Json::try_parse(text);
  if (!figures) die(std::string(argv[i + 1]) + " printed no JSON");
  int worst = kKept;
  for (const Bar& bar : bars) {
    const int verdict = judge(bar, *figures, true);
    if (verdict == kMissed || worst == kKept) worst = verdict;
  }
  if (worst == kMissed)
    for (const Bar& excuse : excuses)
      if (judge(excuse, *figures, false) == kKept) {
        std::printf("hold: UNKNOWN, because %s\n", excuse.text.c_str());
        return kUnknown;
      }
  return worst;
}
