// Sixty lines of text, each in a font, a size and colours of its own, in turn; and a page of nine texts, one of them
// turned by 17 degrees, one upside down.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tools/scene/text/rendered_text.h"

namespace leat::scene {

struct OcrLine {
  std::string_view text, font;
  std::uint32_t pixels;
  Colour ink, paper;
};

inline constexpr std::string_view kOcrFonts[] = {"Sans",     "Serif",      "Sans-Bold",
                                                 "SansMono", "Serif-Bold", "SansMono-Bold"};

inline constexpr OcrLine kOcrLines[] = {
    {"Invoice No. 2024-0187", "Sans", 20, {0, 0, 0}, {255, 255, 255}},
    {"Gate B12 closes at 18:45", "Serif", 24, {30, 30, 90}, {240, 240, 230}},
    {"The quick brown fox jumps", "Sans-Bold", 28, {255, 255, 255}, {40, 60, 50}},
    {"over the lazy dog", "SansMono", 32, {90, 20, 20}, {250, 240, 200}},
    {"Total: 1,249.90 EUR", "Serif-Bold", 36, {60, 60, 60}, {220, 220, 220}},
    {"Speed limit 50 km/h", "SansMono-Bold", 40, {0, 0, 0}, {255, 255, 255}},
    {"Emergency exit", "Sans", 44, {30, 30, 90}, {240, 240, 230}},
    {"Platform 9, track 3", "Serif", 20, {255, 255, 255}, {40, 60, 50}},
    {"Keep refrigerated", "Sans-Bold", 24, {90, 20, 20}, {250, 240, 200}},
    {"Best before 14.03.2026", "SansMono", 28, {60, 60, 60}, {220, 220, 220}},
    {"Serial number X7K-2290-41", "Serif-Bold", 32, {0, 0, 0}, {255, 255, 255}},
    {"Please do not touch", "SansMono-Bold", 36, {30, 30, 90}, {240, 240, 230}},
    {"Meeting room 204", "Sans", 40, {255, 255, 255}, {40, 60, 50}},
    {"Departure 07:32 Hamburg", "Serif", 44, {90, 20, 20}, {250, 240, 200}},
    {"Licence plate MK 4471", "Sans-Bold", 20, {60, 60, 60}, {220, 220, 220}},
    {"Open daily 9 to 17", "SansMono", 24, {0, 0, 0}, {255, 255, 255}},
    {"Temperature 21.5 C", "Serif-Bold", 28, {30, 30, 90}, {240, 240, 230}},
    {"Handle with care", "SansMono-Bold", 32, {255, 255, 255}, {40, 60, 50}},
    {"Made in Portugal", "Sans", 36, {90, 20, 20}, {250, 240, 200}},
    {"Order 88213 shipped", "Serif", 40, {60, 60, 60}, {220, 220, 220}},
    {"Fragile, this side up", "Sans-Bold", 44, {0, 0, 0}, {255, 255, 255}},
    {"Customer copy", "SansMono", 20, {30, 30, 90}, {240, 240, 230}},
    {"Balance due 310.00", "Serif-Bold", 24, {255, 255, 255}, {40, 60, 50}},
    {"Printed on recycled paper", "SansMono-Bold", 28, {90, 20, 20}, {250, 240, 200}},
    {"Channel 7 evening news", "Sans", 32, {60, 60, 60}, {220, 220, 220}},
    {"Exit only", "Serif", 36, {0, 0, 0}, {255, 255, 255}},
    {"No parking", "Sans-Bold", 40, {30, 30, 90}, {240, 240, 230}},
    {"Parcel 14 of 20", "SansMono", 44, {255, 255, 255}, {40, 60, 50}},
    {"Battery 3.7 V 2600 mAh", "Serif-Bold", 20, {90, 20, 20}, {250, 240, 200}},
    {"Pressure 101.3 kPa", "SansMono-Bold", 24, {60, 60, 60}, {220, 220, 220}},
    {"Net weight 500 g", "Sans", 28, {0, 0, 0}, {255, 255, 255}},
    {"Ingredients: water, sugar", "Serif", 32, {30, 30, 90}, {240, 240, 230}},
    {"Conference badge", "Sans-Bold", 36, {255, 255, 255}, {40, 60, 50}},
    {"Room temperature", "SansMono", 40, {90, 20, 20}, {250, 240, 200}},
    {"Server rack 42", "Serif-Bold", 44, {60, 60, 60}, {220, 220, 220}},
    {"Firmware 2.10.4", "SansMono-Bold", 20, {0, 0, 0}, {255, 255, 255}},
    {"Copyright 1998", "Sans", 24, {30, 30, 90}, {240, 240, 230}},
    {"All rights reserved", "Serif", 28, {255, 255, 255}, {40, 60, 50}},
    {"Second floor left", "Sans-Bold", 32, {90, 20, 20}, {250, 240, 200}},
    {"Library closes at noon", "SansMono", 36, {60, 60, 60}, {220, 220, 220}},
    {"Ticket 00491827", "Serif-Bold", 40, {0, 0, 0}, {255, 255, 255}},
    {"Bus 145 to Central Station", "SansMono-Bold", 44, {30, 30, 90}, {240, 240, 230}},
    {"Maximum load 630 kg", "Sans", 20, {255, 255, 255}, {40, 60, 50}},
    {"Caution: hot surface", "Serif", 24, {90, 20, 20}, {250, 240, 200}},
    {"Push to open", "Sans-Bold", 28, {60, 60, 60}, {220, 220, 220}},
    {"Return to sender", "SansMono", 32, {0, 0, 0}, {255, 255, 255}},
    {"Signature required", "Serif-Bold", 36, {30, 30, 90}, {240, 240, 230}},
    {"Chapter eleven", "SansMono-Bold", 40, {255, 255, 255}, {40, 60, 50}},
    {"Figure 3: results", "Sans", 44, {90, 20, 20}, {250, 240, 200}},
    {"Mean and deviation", "Serif", 20, {60, 60, 60}, {220, 220, 220}},
    {"Latitude 52.5200", "Sans-Bold", 24, {0, 0, 0}, {255, 255, 255}},
    {"Elevation 1,032 m", "SansMono", 28, {30, 30, 90}, {240, 240, 230}},
    {"Part 77-A-09", "Serif-Bold", 32, {255, 255, 255}, {40, 60, 50}},
    {"Do not bend", "SansMono-Bold", 36, {90, 20, 20}, {250, 240, 200}},
    {"Insert coin", "Sans", 40, {60, 60, 60}, {220, 220, 220}},
    {"Thank you for waiting", "Serif", 44, {0, 0, 0}, {255, 255, 255}},
    {"Wednesday 24 July", "Sans-Bold", 20, {30, 30, 90}, {240, 240, 230}},
    {"Windows and doors", "SansMono", 24, {255, 255, 255}, {40, 60, 50}},
    {"Approved by inspector 16", "Serif-Bold", 28, {90, 20, 20}, {250, 240, 200}},
    {"End of document", "SansMono-Bold", 32, {60, 60, 60}, {220, 220, 220}},
};

// Of 40 to 80 characters: at a reader's height of 48 they are 750 to 1750 pixels wide.
inline constexpr OcrLine kOcrWideLines[] = {
    {"Please keep this receipt for your records.", "Sans", 16, {0, 0, 0}, {255, 255, 255}},
    {"The next train to Hamburg departs from platform nine.", "Serif", 20, {30, 30, 90}, {240, 240, 230}},
    {"Passengers without a valid ticket pay a fare of 60 euros on board.",
     "Sans-Bold",
     24,
     {255, 255, 255},
     {40, 60, 50}},
    {"All deliveries are to be left with the neighbour in flat 12 after 18:30 today.",
     "SansMono",
     28,
     {90, 20, 20},
     {250, 240, 200}},
    {"This product contains milk, wheat, hazelnuts and may contain traces of soya.",
     "Serif-Bold",
     32,
     {60, 60, 60},
     {220, 220, 220}},
    {"Do not open the cabinet while the green lamp is lit.", "SansMono-Bold", 40, {0, 0, 0}, {255, 255, 255}},
    {"The library is closed on public holidays and on the first Monday of May.",
     "Sans",
     48,
     {30, 30, 90},
     {240, 240, 230}},
    {"Write your name, your address and your telephone number in capital letters",
     "Serif",
     16,
     {0, 0, 0},
     {255, 255, 255}},
    {"Warning: moving parts, keep hands and hair away from the rollers",
     "Sans-Bold",
     20,
     {90, 20, 20},
     {250, 240, 200}},
    {"Invoices are payable within thirty days of receipt", "SansMono", 24, {60, 60, 60}, {220, 220, 220}},
    {"The committee will meet again in the large hall on Thursday the 24th of October",
     "Serif-Bold",
     28,
     {255, 255, 255},
     {40, 60, 50}},
    {"Unauthorised vehicles will be towed at the expense of the owner",
     "SansMono-Bold",
     32,
     {0, 0, 0},
     {255, 255, 255}},
    {"Fasten your seat belt while seated and stow all bags under the seat in front",
     "Sans",
     40,
     {30, 30, 90},
     {240, 240, 230}},
    {"Store in a cool and dry place, away from direct sunlight", "Serif", 48, {90, 20, 20}, {250, 240, 200}},
    {"Total including value added tax of 19 percent: 4,318.75 euros", "Sans-Bold", 16, {60, 60, 60}, {220, 220, 220}},
    {"Every visitor signs the book at the entrance and wears a badge.", "SansMono", 20, {0, 0, 0}, {255, 255, 255}},
};

struct OcrPageText {
  const char* text;
  TextPainter::Style style;
  double x, y;
};
inline constexpr OcrPageText kOcrPage[] = {
    {"Quarterly Report 2024", {.font = "Sans-Bold", .pixels = 44}, 400, 60},
    {"Prepared for the board", {.font = "Serif", .pixels = 26}, 250, 140},
    {"Revenue 1,284,000 EUR", {.font = "Sans", .pixels = 28}, 240, 220},
    {"Costs 917,350 EUR", {.font = "SansMono", .pixels = 24}, 620, 220},
    {"Draft, not for circulation", {.font = "Sans", .pixels = 24, .degrees = 17, .ink = {160, 0, 0}}, 580, 360},
    {"Approved by M. Keller", {.font = "Serif-Bold", .pixels = 28}, 230, 420},
    {"Page 1 of 12", {.font = "Sans", .pixels = 22}, 400, 560},
    {"Upside down note", {.font = "Sans", .pixels = 28, .degrees = 180, .ink = {0, 0, 120}}, 220, 500},
    {"ref: A7-443-KX", {.font = "SansMono-Bold", .pixels = 24, .ink = {60, 60, 60}}, 630, 480},
};

// A page of wide lines, each in its height; every other one stands on its head.
inline constexpr std::uint32_t kOcrWidePageLine = 80;  // pixels from one to the next
inline TextPicture ocr_wide_page(const TextPainter& painter) {
  TextPicture page(1280, kOcrWidePageLine * static_cast<std::uint32_t>(std::size(kOcrWideLines)));
  std::uint32_t i = 0;
  for (const OcrLine& l : kOcrWideLines) {
    const TextPainter::Style style{
        .font = l.font, .pixels = std::min(l.pixels, 24u), .degrees = i % 2 == 0 ? 0.0 : 180.0};
    painter.draw(page, l.text, page.width / 2.0, kOcrWidePageLine * (i++ + 0.5), style);
  }
  return page;
}

inline TextPicture ocr_page(const TextPainter& painter) {
  TextPicture page(800, 600);
  for (const OcrPageText& t : kOcrPage) painter.draw(page, t.text, t.x, t.y, t.style);
  return page;
}

}  // namespace leat::scene
