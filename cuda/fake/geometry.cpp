#include "cuda/fake/geometry.h"

namespace leat::fake {
namespace {

// Ids as in NVML: 0..4 are one, two, three, four and seven slices, 9 is one slice with the memory of two.
constexpr unsigned kOne = 0, kTwo = 1, kThree = 2, kFour = 3, kSeven = 4, kOneWide = 9;

constexpr Profile kA30[] = {{kOne, "1g.6gb", 1, 1, 4, 0b1111, 14, 5836},
                            {kTwo, "2g.12gb", 2, 2, 2, 0b0101, 28, 11672},
                            {kFour, "4g.24gb", 4, 4, 1, 0b0001, 56, 23344}};
constexpr Profile kA10040[] = {
    {kOne, "1g.5gb", 1, 1, 7, 0b1111111, 14, 4864},    {kOneWide, "1g.10gb", 1, 2, 4, 0b1010101, 14, 9856},
    {kTwo, "2g.10gb", 2, 2, 3, 0b0010101, 28, 9856},   {kThree, "3g.20gb", 3, 4, 2, 0b0010001, 42, 19968},
    {kFour, "4g.20gb", 4, 4, 1, 0b0000001, 56, 19968}, {kSeven, "7g.40gb", 7, 8, 1, 0b0000001, 98, 40192}};
constexpr Profile kA10080[] = {
    {kOne, "1g.10gb", 1, 1, 7, 0b1111111, 14, 9856},   {kOneWide, "1g.20gb", 1, 2, 4, 0b1010101, 14, 19968},
    {kTwo, "2g.20gb", 2, 2, 3, 0b0010101, 28, 19968},  {kThree, "3g.40gb", 3, 4, 2, 0b0010001, 42, 40192},
    {kFour, "4g.40gb", 4, 4, 1, 0b0000001, 56, 40192}, {kSeven, "7g.80gb", 7, 8, 1, 0b0000001, 98, 80384}};
constexpr Profile kH100[] = {
    {kOne, "1g.10gb", 1, 1, 7, 0b1111111, 16, 10112},  {kOneWide, "1g.20gb", 1, 2, 4, 0b1010101, 16, 20096},
    {kTwo, "2g.20gb", 2, 2, 3, 0b0010101, 32, 20096},  {kThree, "3g.40gb", 3, 4, 2, 0b0010001, 60, 40448},
    {kFour, "4g.40gb", 4, 4, 1, 0b0000001, 64, 40448}, {kSeven, "7g.80gb", 7, 8, 1, 0b0000001, 132, 81152}};
constexpr Profile kH200[] = {
    {kOne, "1g.18gb", 1, 1, 7, 0b1111111, 16, 16384},  {kOneWide, "1g.35gb", 1, 2, 4, 0b1010101, 16, 33280},
    {kTwo, "2g.35gb", 2, 2, 3, 0b0010101, 32, 33280},  {kThree, "3g.71gb", 3, 4, 2, 0b0010001, 60, 71168},
    {kFour, "4g.71gb", 4, 4, 1, 0b0000001, 64, 71168}, {kSeven, "7g.141gb", 7, 8, 1, 0b0000001, 132, 143104}};

constexpr Model kModels[] = {{"A30", 56, 56, 24576, 4, kA30},
                             {"A100-40", 108, 98, 40960, 8, kA10040},
                             {"A100-80", 108, 98, 81920, 8, kA10080},
                             {"H100-80", 132, 132, 81559, 8, kH100},
                             {"H200-141", 132, 132, 143771, 8, kH200}};

}  // namespace

std::span<const Model> models() noexcept { return kModels; }

const Model* find_model(std::string_view name) noexcept {
  for (const Model& m : kModels)
    if (name == m.name) return &m;
  return nullptr;
}

const Profile* find_profile(const Model& model, unsigned id) noexcept {
  for (const Profile& p : model.profiles)
    if (p.id == id) return &p;
  return nullptr;
}

}  // namespace leat::fake
