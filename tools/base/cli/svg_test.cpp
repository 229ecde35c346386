#include "tools/base/cli/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace leat::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Svg, EscapesText) {
  Svg svg(10, 10);
  svg.text(1, 1, "a<b & \"c\">");
  EXPECT_THAT(svg.str(), HasSubstr("a&lt;b &amp; &quot;c&quot;&gt;"));
}

TEST(Svg, PlotsNameTheirAxesAndSeries) {
  Plot plot{"growth",
            "GPUs",
            "seconds",
            true,
            true,
            false,
            {{"exact", {{100, 0.002}, {1000, 0.003}}, false}, {"lost", {{1, NAN}, {-5, 1}}, true}},
            640,
            400};
  const std::string text = plot_svg(plot);
  for (const char* word : {"growth", "GPUs", "seconds", "exact", "lost", ">1000<", "0.01"})
    EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_EQ(text, plot_svg(plot));
}

TEST(Svg, AnEmptyPlotIsStillAPicture) {
  const std::string text = plot_svg({"nothing", "x", "y", false, true, false, {}, 300, 200});
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, HasSubstr("</svg>"));
}

TEST(Svg, BarsStandOnTheFloorInTheirGroups) {
  const std::string text =
      bars_svg({"drops", "%", {"detect", "read"}, {{"leat", {1, 2}}, {"pard", {4, NAN}}}, 400, 300});
  for (const char* word : {"drops", "detect", "read", "leat", "pard"}) EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  // The tallest of 4 on an axis to 4: from the ceiling (34) to the floor (300 - 46).
  EXPECT_THAT(text, HasSubstr("y=\"34\" width=\"36\" height=\"220\""));
}

}  // namespace
}  // namespace leat::cli
