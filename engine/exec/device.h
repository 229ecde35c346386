/* The device interface: a C ABI, so that what knows a GPU's driver is a plug-in loaded with dlopen (leat_device_entry).
 *
 * A worker opens one device: memory that other processes can map, host memory the device reads where it lies, picture
 * kernels, copies, and one stream that orders all of it. Whatever returns LEAT_DEVICE_OK without waiting has only put
 * work on the stream, in order; its memory belongs to the stream until wait() has returned, or wait_for() a mark behind
 * it.
 *
 * Thread rule: a device is used by the thread that opened it, but for wait_for(). Ownership: the caller owns every
 * address it was given until it gives it back. Errors: a status other than LEAT_DEVICE_OK; `error` receives one line.
 * LEAT_DEVICE_LOST: a fault, here or in another process that shares the device, has made every later call useless; the
 * process ends.
 */
#ifndef LEAT_DEVICE_H
#define LEAT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_DEVICE_ABI 6u
#define LEAT_DEVICE_MAX_JOBS 256u /* pictures of a set between two waits */
#define LEAT_DEVICE_SETS 2u       /* batches on the stream at once */

enum leat_device_status { LEAT_DEVICE_OK = 0, LEAT_DEVICE_FAILED = 1, LEAT_DEVICE_LOST = 2 };
enum leat_picture_source { LEAT_PICTURE_MEASURED = 0, LEAT_PICTURE_IN_PLACE = 1, LEAT_PICTURE_UPLOADED = 2 };
enum leat_picture_layout { LEAT_NCHW = 0, LEAT_NHWC = 1 };

/* How a picture is resized (the word resize= of preprocess): as OpenCV's INTER_LINEAR; as Pillow's BILINEAR and
 * BICUBIC; as OpenCV's INTER_AREA; as Pillow's LANCZOS and NEAREST. */
enum leat_resize {
  LEAT_RESIZE_linear = 0,
  LEAT_RESIZE_antialias = 1,
  LEAT_RESIZE_cubic = 2,
  LEAT_RESIZE_area = 3,
  LEAT_RESIZE_lanczos = 4,
  LEAT_RESIZE_nearest = 5
};

typedef struct leat_device leat_device;

typedef struct leat_device_options {
  const char* uuid;        /* of the GPU or MIG device, "GPU-..." or "MIG-..."; NULL: the first that is visible */
  uint32_t picture_source; /* enum leat_picture_source */
} leat_device_options;

typedef struct leat_device_info {
  char uuid[64], name[96];
  uint32_t multiprocessors; /* that this process may use: fewer than the GPU's in an MPS share */
  uint32_t picture_source;  /* in place or uploaded: as asked for, or as measured faster */
  uint32_t has_provider;    /* 0: a stand-in driver, on which no library computes; host code may touch device memory */
  uint32_t reads_read_only; /* host memory mapped read-only can be registered */
  uint32_t codecs;          /* 1 << leat_codec for each that it decodes */
  uint64_t memory_bytes;
  void* stream; /* the driver's handle, for libraries that put work on it */
} leat_device_info;

typedef struct leat_device_memory {
  void* address;
  uint64_t bytes; /* usable: at least what was asked for */
  uint64_t handle;
} leat_device_memory;

/* Of this process. What a library takes for itself is not in it: free_bytes shows that, with everybody else's. */
typedef struct leat_device_usage {
  uint64_t allocated_bytes; /* device memory made here, as the driver rounds it */
  uint64_t imported_bytes;  /* made by others and mapped here */
  uint64_t pinned_bytes;    /* of the host: allocated or registered */
  uint64_t free_bytes;      /* of the whole device, now */
} leat_device_usage;

/* One picture: a rectangle of a frame into one row of a model's input. Geometry and colour as preprocess.h: target
 * pixel i of the window lies at x0 + (i + 0.5) * scale_x - 0.5 in frame pixels, or covers the i-th part of x0..x1 where
 * the target is not resized linearly; component c is clamp(factors[c][0..2] .
 * source + factors[c][3], low[c], high[c]); outside of the window it is pad[c]. */
typedef struct leat_picture_job {
  const uint8_t* planes[3]; /* host addresses within [slot, slot + slot_bytes) */
  const uint8_t* slot;      /* NULL: the planes are the device's own (leat_decoded) */
  uint64_t slot_bytes;
  uint32_t strides[3];
  uint32_t format, width, height; /* leat_format; pixels of the frame */
  float x0, y0, x1, y1;           /* frame pixels */
  float scale_x, scale_y;
  uint32_t left, top, window_width, window_height; /* of the target */
  float factors[3][4], low[3], high[3], pad[3];
  void* out; /* device memory: the row */
} leat_picture_job;

typedef struct leat_picture_target {
  uint32_t width, height, channels; /* 1 or 3 */
  uint32_t dtype;                   /* LEAT_F32, LEAT_F16, or LEAT_U8: 0..1 becomes 0..255, rounded */
  uint32_t layout;                  /* enum leat_picture_layout */
  uint32_t resize;                  /* enum leat_resize, of every picture */
} leat_picture_target;

/* One stream of access units (leat_codec), decoded in the order given. Each picture stays at a place of its own, below
 * `places`, until an access unit comes for that place. */
typedef struct leat_decoder leat_decoder;

typedef struct leat_decoder_options {
  uint32_t codec;         /* leat_codec */
  uint32_t width, height; /* that every picture must have */
  uint32_t places;        /* 1..32 */
} leat_decoder_options;

typedef struct leat_access_unit {
  const uint8_t* data; /* may change while it is read: it is copied before it is looked at */
  uint64_t bytes;
  uint32_t place;
  uint32_t gap; /* 1: others before it are missing */
} leat_access_unit;

typedef struct leat_decoded {
  const uint8_t* planes[3]; /* device memory */
  uint32_t strides[3];
  uint32_t format;                    /* leat_format */
  uint32_t color_range, color_matrix; /* as the bitstream states: leat_color_range, leat_color_matrix */
  uint64_t bytes;                     /* from planes[0] */
} leat_decoded;

typedef struct leat_device_api {
  uint32_t abi;     /* LEAT_DEVICE_ABI */
  const char* name; /* "cuda" */
  int (*open)(const leat_device_options* options, leat_device** out, char* error, size_t error_bytes);
  void (*close)(leat_device* device); /* waits for the stream; everything given out is given back */
  void (*info)(leat_device* device, leat_device_info* out);
  /* Dense memory, zeroed. shared: export_memory() can make a descriptor of it. */
  int (*allocate)(leat_device* device, uint64_t bytes, int shared, leat_device_memory* out, char* error,
                  size_t error_bytes);
  int (*export_memory)(leat_device* device, const leat_device_memory* memory, int* fd, char* error, size_t error_bytes);
  /* Maps what another process exported; the descriptor stays the caller's and may be closed. */
  int (*import_memory)(leat_device* device, int fd, uint64_t bytes, leat_device_memory* out, char* error,
                       size_t error_bytes);
  void (*release)(leat_device* device, leat_device_memory* memory); /* after wait(): nothing on the stream uses it */
  /* Pinned host memory, for downloads. */
  int (*host_allocate)(leat_device* device, uint64_t bytes, void** out, char* error, size_t error_bytes);
  void (*host_release)(leat_device* device, void* at);
  /* Pins whole pages of this process for the device; once for a client's slots, never for one frame. */
  int (*host_register)(leat_device* device, void* at, uint64_t bytes, int read_only, char* error, size_t error_bytes);
  void (*host_unregister)(leat_device* device, void* at); /* after wait(), before the pages are unmapped */
  /* ---- on the stream ---- */
  int (*pictures)(leat_device* device, const leat_picture_target* target, const leat_picture_job* jobs, uint32_t count,
                  char* error, size_t error_bytes); /* all in one launch; unregistered slots are uploaded */
  /* The same in two halves, of which the second can be captured: what has to be uploaded is, and the jobs are the first
   * of the set in force, which has no others; then the first `count` of a set become pictures, as often as is asked. */
  int (*ready_pictures)(leat_device* device, const leat_picture_job* jobs, uint32_t count, char* error,
                        size_t error_bytes);
  int (*put_pictures)(leat_device* device, uint32_t set, const leat_picture_target* target, uint32_t count, char* error,
                      size_t error_bytes);
  int (*copy)(leat_device* device, void* to, const void* from, uint64_t bytes, char* error, size_t error_bytes);
  int (*enqueue)(leat_device* device, void (*function)(void*), void* argument, char* error, size_t error_bytes);
  /* What is put on the stream between the two is noted and not done; launch() puts all of it there at once, over the
   * same addresses. graph receives its name, 1 and more; NULL: drops what was noted, as that of a library which failed
   * half-way, if anything was. Nothing may be waited for in between. LEAT_DEVICE_FAILED: it cannot be captured, and the
   * stream is as it was. */
  int (*begin_capture)(leat_device* device, char* error, size_t error_bytes);
  int (*end_capture)(leat_device* device, uint32_t* graph, char* error, size_t error_bytes);
  int (*launch)(leat_device* device, uint32_t graph, char* error, size_t error_bytes);
  void (*release_graph)(leat_device* device, uint32_t graph); /* it is not on the stream; close() does so with all */
  /* Notes the device's time, as the first (0) or the second (1) of a pair. */
  int (*stamp)(leat_device* device, uint32_t which, char* error, size_t error_bytes);
  /* Returns when the stream is empty. The thread sleeps meanwhile. */
  int (*wait)(leat_device* device, char* error, size_t error_bytes);
  /* Batches that overlap: a set (below LEAT_DEVICE_SETS) has room on the host for what its work reads there. What is
   * put on the stream from use_set() on, up to mark(), is of that set; what was of it before has been waited for. */
  int (*use_set)(leat_device* device, uint32_t set, char* error, size_t error_bytes);
  int (*mark)(leat_device* device, uint32_t set, char* error, size_t error_bytes);
  /* Returns when the stream has passed the set's latest mark. On any thread, one at a time; which sleeps meanwhile. */
  int (*wait_for)(leat_device* device, uint32_t set, char* error, size_t error_bytes);
  /* After wait(): from the first stamp to the second. */
  int (*elapsed)(leat_device* device, uint64_t* nanoseconds, char* error, size_t error_bytes);
  int (*usage)(leat_device* device, leat_device_usage* out, char* error, size_t error_bytes);
  /* ---- bitstreams ---- */
  int (*decoder_open)(leat_device* device, const leat_decoder_options* options, leat_decoder** out, char* error,
                      size_t error_bytes);
  void (*decoder_close)(leat_device* device, leat_decoder* decoder); /* nothing on the stream reads its pictures */
  /* Puts it before the decoder. LEAT_DEVICE_FAILED: it has no picture, and neither has what follows up to the next key
   * picture; the line is for the first of them alone. Nothing on the stream reads the place's earlier picture. */
  int (*decode)(leat_device* device, leat_decoder* decoder, const leat_access_unit* unit, char* error,
                size_t error_bytes);
  /* The picture at a place, to be read by work that is put on the stream from now on. LEAT_DEVICE_FAILED: there is
   * none, because of the access unit there or of one it refers to. */
  int (*decoded)(leat_device* device, leat_decoder* decoder, uint32_t place, leat_decoded* out, char* error,
                 size_t error_bytes);
} leat_device_api;

/* The one symbol a device plug-in exports. */
const leat_device_api* leat_device_entry(void);

#ifdef __cplusplus
}
#endif
#endif
