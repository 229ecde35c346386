#include "tools/leat/try/answer_text.h"

#include <cstdio>

namespace leat::tools {
namespace {

std::string word(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

std::string answer_table(const Json& answer) {
  std::string out;
  char line[256];
  if (answer.contains("reason"))
    out += "  " + word(answer["outcome"]) + " (" + word(answer["reason"]) + "): " + word(answer["reason_text"]) + "\n";
  if (answer.contains("damaged")) out += "  damaged: the picture may show an error of its file or stream\n";
  if (answer.contains("detections")) {
    if (answer["detections"].empty()) out += "  nothing was found\n";
    for (const Json& d : answer["detections"]) {
      std::snprintf(line, sizeof line, "  %-20s %5.1f %%  %7.1f %7.1f %7.1f %7.1f", word(d["class"]).c_str(),
                    100 * d["score"].get<double>(), d["box"][0].get<double>(), d["box"][1].get<double>(),
                    d["box"][2].get<double>(), d["box"][3].get<double>());
      out += line;
      for (const Json& label : d.value("labels", Json::array())) out += "  " + word(label["class"]);
      out += "\n";
    }
    if (answer.contains("left_out")) out += "  and " + answer["left_out"].dump() + " more than a result holds\n";
  }
  for (const Json& c : answer.value("classes", Json::array())) {
    std::snprintf(line, sizeof line, "  %-32s %5.1f %%\n", word(c["class"]).c_str(), 100 * c["score"].get<double>());
    out += line;
  }
  for (const Json& part : answer.value("parts", Json::array())) {
    out += "  " + word(part["kind"]) + " " + word(part["name"]);
    if (part.contains("shape")) out += " " + part["shape"].dump() + " " + word(part["type"]);
    if (part.contains("mean")) {
      std::snprintf(line, sizeof line, ", %g to %g, mean %g", part["min"].get<double>(), part["max"].get<double>(),
                    part["mean"].get<double>());
      out += line;
    }
    out += "\n";
    for (const char* list : {"lines", "boxes", "classes", "masks", "points"})
      for (const Json& row : part.value(list, Json::array()))
        out += "    " + (row.is_object() && row.contains("text") ? word(row["text"]) : row.dump()) + "\n";
  }
  if (answer.contains("checksum")) out += "  checksum " + word(answer["checksum"]) + "\n";
  return out;
}

}  // namespace leat::tools
