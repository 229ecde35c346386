// leat feed: video files, devices, URLs, raw files and standard input into a daemon, and the figures of what came back.
// Its options; feed_run.cpp does it.
#include "tools/base/cli/json_output.h"
#include "tools/leat/commands.h"
#include "tools/leat/feed/feed_run.h"
#include "tools/leat/feed/source/source_options.h"
#include "tools/scene/tracking/any_tracker.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "cameras",
     .letter = 'c',
     .type = Type::path,
     .value = "FILE",
     .help = "cameras to feed, as a TOML file has them (docs/guide/cameras.md); read again on SIGHUP: those that it "
             "adds, removes or changes begin and end, and nobody touches the others"},
    {.name = "application",
     .letter = 'a',
     .type = Type::text,
     .value = "NAME",
     .help = "application of the daemon that takes the frames (default: the only one that it serves)"},
    {.name = "streams",
     .letter = 'n',
     .type = Type::integer,
     .value = "N",
     .min = 0,
     .max = 256,
     .help = "streams to open; sources are used in turn (default: one per source)"},
    {.name = "realtime",
     .letter = 'r',
     .help =
         "send each picture when it is due by its own time, and keep to the newest: pictures are skipped rather than "
         "sent too late. Times that go back, or ahead by over 10 s, go on one frame interval after the last picture"},
    {.name = "rate",
     .type = Type::real,
     .value = "HZ",
     .min = 0,
     .max = 100000,
     .help = "pictures per second of each stream instead of the source's own; implies sending when due"},
    {.name = "loop", .letter = 'l', .help = "begin again at the source's end"},
    {.name = "seconds", .letter = 's', .type = Type::real, .value = "S", .min = 0, .help = "stop after this time"},
    {.name = "frames",
     .type = Type::integer,
     .value = "N",
     .min = 0,
     .help = "stop each stream after this many frames"},
    {.name = "slo-ms",
     .type = Type::real,
     .value = "MS",
     .min = 0,
     .max = 3600000,
     .help = "objective from capture to answer (default: the application's)"},
    cli::integer_option("depth", "4", 1, 64, "frames of one stream waiting or running at once"),
    {.name = "overload",
     .type = Type::choice,
     .choices = "auto|latest|fifo|latest_per_key|never_drop",
     .fallback = "auto",
     .help = "what gives way when frames wait; auto: latest for cameras and with --realtime, else fifo"},
    {.name = "decoders",
     .type = Type::choice,
     .choices = "auto|apart|yield|anywhere",
     .fallback = "auto",
     .help = "where pictures are decoded: apart, on cores that no partition has; yield, giving way to everything else; "
             "auto: apart where such a core is left, else yield"},
    {.name = "priority",
     .type = Type::choice,
     .choices = "background|normal|high|protected",
     .fallback = "normal",
     .help = "of every stream"},
    {.name = "stdin",
     .help = "read standard input: y4m, or raw pictures with --raw and --size; the same as the source '-'"},
    {.name = "raw",
     .type = Type::choice,
     .choices = "nv12|i420|rgb24|bgr24|gray8",
     .help = "sources are raw pictures of this format, read straight into the frame slots"},
    {.name = "size", .type = Type::text, .value = "WIDTHxHEIGHT", .help = "of raw pictures"},
    {.name = "color-range",
     .type = Type::choice,
     .choices = "auto|limited|full",
     .fallback = "auto",
     .help = "of YUV and gray pictures, whatever the source says; auto: as it says, else limited"},
    {.name = "color-matrix",
     .type = Type::choice,
     .choices = "auto|bt601|bt709|bt2020",
     .fallback = "auto",
     .help = "of YUV pictures, whatever the source says; auto: as it says, else bt709 from 720 lines on, bt601 below"},
    {.name = "damaged",
     .type = Type::choice,
     .choices = "mark|drop|keep",
     .fallback = "mark",
     .help = "pictures that may show an error of their stream: mark, their answers say so; drop, they are not sent; "
             "keep, they are sent as any others"},
    {.name = "transport", .type = Type::choice, .choices = "tcp|udp", .fallback = "tcp", .help = "of RTSP sources"},
    {.name = "decoder",
     .type = Type::choice,
     .choices = "cpu|auto|vaapi|cuda",
     .fallback = "cpu",
     .help = "what decodes: the processor, or a device where libav has one; auto: the first device that is there"},
    {.name = "bitstream",
     .help = "send access units (H.264, HEVC, AV1, JPEG) as they lie in SOURCE, for leatd to decode on its GPUs"},
    {.name = "stall",
     .type = Type::real,
     .value = "S",
     .fallback = "5",
     .min = 0,
     .max = 86400,
     .help = "a camera or live stream without a picture in time for so long is opened again; 0 = never"},
    kAsStoredOption,
    {.name = "truth",
     .type = Type::path,
     .value = "FILE",
     .repeat = true,
     .help = "ground truth of the source at the same place (leat-scene --truth); accuracy is reported"},
    {.name = "answers",
     .type = Type::path,
     .value = "FILE",
     .help = "append every answer to FILE as a line of JSON (docs/reference/answers.md); - is standard output, and the "
             "table goes to standard error"},
    {.name = "track", .help = "with --answers: detections have identities, the same from picture to picture"},
    {.name = "min-score",
     .type = Type::real,
     .value = "SCORE",
     .min = 0,
     .max = 1,
     .help = "with --answers: detections that score less are left out"},
    {.name = "classes",
     .type = Type::text,
     .value = "NAME",
     .repeat = true,
     .help = "with --answers: detections of other classes are left out; a label of the model, or a number"},
    {.name = "annotate",
     .type = Type::path,
     .value = "FILE",
     .help = "write a stream with what was answered drawn on it as a video (.mp4, .mkv), at most 30 pictures a second "
             "where it keeps its own time; with --accuracy every picture of it"},
    {.name = "annotate-stream",
     .type = Type::text,
     .value = "NAME|N|all",
     .fallback = "0",
     .help = "which stream --annotate writes, by its name or counted from 0; all: all of them side by side"},
    {.name = "accuracy",
     .type = Type::real,
     .value = "DROP",
     .min = 0,
     .max = 0.5,
     .help =
         "coordinated streams: how much accuracy each may lose between answers, in the mean over a second, such as "
         "0.06. leatd says which pictures it wants, boxes are tracked over all others, and the table says what that "
         "saved and lost; needs --realtime, --rate or a camera"},
    {.name = "task",
     .type = Type::text,
     .value = "PART",
     .repeat = true,
     .help =
         "with --accuracy, a part of every picture that is looked at by itself: WIDTHxHEIGHT+X+Y in even pixels, or "
         "'all'; with '@NAME' behind it that application takes it, and with ':2' at the end what it loses weighs "
         "twice. Two to four tasks share what is asked for, so that all together lose the least, and --accuracy is for "
         "their weighted mean; those of one application take turns"},
    {.name = "tracker",
     .type = Type::choice,
     .choices = scene::kTrackers,
     .fallback = "blocks",
     .help = "with --accuracy, what carries boxes from picture to picture: blocks, which needs no library, or lk, the "
             "tracker of Lucas and Kanade, where this was built with OpenCV"},
    {.name = "certainty",
     .type = Type::path,
     .value = "FILE",
     .help = "with --accuracy, what the tracker tells its loss by, as `leat certainty --out FILE` has made it of your "
             "own videos; default: the rule that it comes with"},
    kSocketOption,
    cli::json_option("print the figures as JSON, and the table on standard error"),
    {.name = "quiet", .letter = 'q', .help = "no live figures"},
};
constexpr cli::Positional kPositionals[] = {
    {.name = "SOURCE", .help = "a video file, a device such as /dev/video0, a URL, or '-'", .min = 0, .max = 256}};
constexpr cli::Example kExamples[] = {
    {.line = "leat feed --realtime street.mp4 rtsp://camera/main", .text = "a file and a camera, each in its own time"},
    {.line = "leat feed --cameras house.toml --answers answers.ndjson", .text = "a house full of cameras, for months"},
    {.line = "ffmpeg -i in.mkv -f yuv4mpegpipe - | leat feed --stdin", .text = "whatever ffmpeg can read"},
    {.line =
         "leat feed --realtime --accuracy 0.06 --task 640x360+0+0:2 --task 640x360+640+0 --annotate out.mp4 road.mp4",
     .text = "two views of one camera that take turns, the left one weighing twice"},
    {.line = "leat feed --realtime --answers - --track rtsp://camera/main | mosquitto_pub -l -t leat/answers",
     .text = "every answer, with identities, to whoever subscribes"},
    {.line = "leat feed --raw nv12 --size 1280x720 --rate 100 --loop frames.nv12",
     .text = "raw pictures, read into the slots by the kernel"},
};
constexpr cli::Command kCommand = {
    .name = "leat feed",
    .summary = "feeds video into a daemon and reports what came back",
    .description =
        "Each picture is written once, into a slot that the workers read in place. Without --realtime or --rate "
        "pictures go in as fast as "
        "answers come, never more than --depth of a stream at once.\n\n"
        "With --realtime or --rate, and from devices and live streams, a feeder that lags leaves pictures undecoded to "
        "which no other refers, then passes over everything up to a newer key frame. What can no longer be answered in "
        "time is not submitted, nor is what finds no free slot. The table says for each stream what was skipped, and "
        "why; "
        "with --overload never_drop nothing is skipped for being late.\n\n"
        "A device or a URL that cannot be opened, breaks off or stalls is opened anew after pauses of 0.25 to 3 "
        "seconds, and harms no other; leatd may end and start meanwhile, and what is due then is skipped. A file is "
        "read "
        "once. All streams go over one connection. `leat status` shows how each camera is.\n\n"
        "The figures are the client's own count: submitted = completed + late + dropped + failed + rejected + in "
        "flight, exactly (and those unanswered because leatd ended). Latency is from "
        "capture (with --realtime: when the picture was due) to the answer, of completed and late frames; goodput is "
        "completed frames per second.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-top(1), leat-scene(1), leatd(8)",
};

int run(const cli::Arguments& args) { return run_feed(args, kCommand.name); }

}  // namespace

extern const cli::Subcommand kLeatFeed;
const cli::Subcommand kLeatFeed = {.command = &kCommand, .run = run};

}  // namespace leat::tools
