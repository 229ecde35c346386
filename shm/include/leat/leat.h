/* Leat's client library: the C ABI.
 *
 * A client connects to leatd over its Unix socket, opens streams, and for every frame: acquires a slot, writes pixels
 * into it (the only write of the frame, ever), submits it, and later takes exactly one answer: a result, or a refusal
 * with its reason. Nothing blocks without limit; a full stream is an answer (LEAT_ERROR_ring_full).
 *
 *   leat_client* client;            leat_connect(NULL, &client);
 *   leat_stream_options options;    leat_stream_options_init(&options); options.application = "shapes"; ...
 *   leat_stream* stream;            leat_open_stream(client, &options, &stream);
 *   leat_frame frame;               leat_acquire(stream, &frame);  ... write frame.planes ...
 *                                   leat_submit(&frame, NULL, NULL);
 *   leat_answer answer;             leat_next_answer(client, 100000000, &answer);  ... read answer.result ...
 *                                   leat_release(&answer);
 *
 * Times: `_ns` are nanoseconds; points in time are CLOCK_MONOTONIC (leat_now_ns).
 * Thread rule, per client: one thread may submit (acquire, abandon, submit, cancel, flush, and all of grants and of
 * coordinated streams) while another takes answers (next_answer, release); closing streams and disconnecting exclude
 * both, opening one excludes neither, but for a client of leat_wait_any or leat_answer_fd. acquire, abandon, release
 * and answer_frame touch their own stream alone: those of different streams may be different threads'. Different
 * clients are independent. Errors: functions return a leat_error; leat_last_error() is one line about the calling
 * thread's last failed call: what went wrong and what to do. After LEAT_ERROR_disconnected every call on that client
 * fails alike: disconnect and connect anew. ABI: structs only grow at their end; leat_abi_version() tells the
 * library's, LEAT_ABI_VERSION the header's. */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <stddef.h>
#include <stdint.h>

#include "leat/frame_format.h"
#include "leat/outcome.h"
#include "leat/result_parts.h"
#include "leat/result_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_ABI_VERSION 6u

#if defined(__GNUC__)
#define LEAT_API __attribute__((visibility("default")))
#else
#define LEAT_API
#endif

/* LEAT_ERRORS(X): X(name, value, text). Append only: the daemon sends them over the wire. */
#define LEAT_ERRORS(X)                                                                                             \
  X(ok, 0, "no error")                                                                                             \
  X(daemon_absent, 1, "no leatd answers at the socket; start leatd or name its socket")                            \
  X(wrong_version, 2, "client library and leatd speak different versions; install the same release of both")       \
  X(no_such_application, 3, "leatd serves no application of that name; `leat status` lists them")                  \
  X(not_permitted, 4, "leatd's configuration does not allow this user or request")                                 \
  X(format_mismatch, 5, "the format, size or stride is not one the application takes")                             \
  X(ring_full, 6, "every slot of the stream is in use; take and release answers, skip this frame, or open deeper") \
  X(timed_out, 7, "no answer came within the time given")                                                          \
  X(invalid_argument, 8, "an argument is out of its range")                                                        \
  X(disconnected, 9, "leatd closed the connection or ended; disconnect and connect again")                         \
  X(no_room, 10, "a limit of leatd is reached; close streams or raise the limit in its configuration")             \
  X(no_memory, 11, "memory for the segments could not be had; lower depth or frame size, or free memory")          \
  X(protocol, 12, "leatd sent something this library does not understand; install the same release of both")       \
  X(system, 13, "a system call failed")                                                                            \
  X(not_ready, 14, "leatd is starting or stopping; try again")

typedef enum leat_error {
#define X(name, value, text) LEAT_ERROR_##name = value,
  LEAT_ERRORS(X)
#undef X
} leat_error;

/* What happens to a frame submitted while `depth` requests of its stream are already waiting or running.
 * LEAT_OVERLOADS(X): X(name, value, text) */
#define LEAT_OVERLOADS(X)                                                           \
  X(fifo, 0, "the new frame is refused (queue_full)")                               \
  X(latest, 1, "the oldest waiting frame, by capture time, gives way (superseded)") \
  X(latest_per_key, 2, "a waiting frame of the same key gives way (superseded)")    \
  X(never_drop, 3, "nothing is given up; late frames are still delivered, as late")

typedef enum leat_overload {
#define X(name, value, text) LEAT_OVERLOAD_##name = value,
  LEAT_OVERLOADS(X)
#undef X
} leat_overload;

typedef enum leat_priority {
  LEAT_PRIORITY_BACKGROUND = 0,
  LEAT_PRIORITY_NORMAL = 1,
  LEAT_PRIORITY_HIGH = 2,
  LEAT_PRIORITY_PROTECTED = 3
} leat_priority;

typedef struct leat_client leat_client; /* a connection */
typedef struct leat_stream leat_stream; /* owned by its client; dies with it */

/* ---- library ---- */
LEAT_API uint32_t leat_abi_version(void);
LEAT_API const char* leat_error_name(leat_error error);  /* "ring_full"; static */
LEAT_API const char* leat_error_text(leat_error error);  /* from the table; static */
LEAT_API const char* leat_last_error(void);              /* this thread's; valid until its next failed call */
LEAT_API const char* leat_outcome_name(uint8_t outcome); /* "completed"; static */
LEAT_API const char* leat_reason_name(uint8_t reason);   /* "expired"; static */
LEAT_API const char* leat_reason_text(uint8_t reason);
LEAT_API int64_t leat_now_ns(void); /* CLOCK_MONOTONIC */
/* The socket used when none is named: $LEAT_SOCKET, else $XDG_RUNTIME_DIR/leat.sock, else /run/leat/leat.sock. Static.
 */
LEAT_API const char* leat_default_socket(void);

/* ---- connection ---- */
typedef enum leat_wait {
  LEAT_WAIT_PARK = 0, /* sleeps at once: right for answers that take longer than some 50 us */
  LEAT_WAIT_YIELD = 1 /* yields the core a while first: for answers faster than a wake */
} leat_wait;

typedef struct leat_connect_options {
  const char* socket; /* NULL: leat_default_socket() */
  const char* name;   /* shown by `leat top`; NULL: the program's name. At most 31 bytes are kept */
  int64_t timeout_ns; /* to be let in, and for each control exchange with leatd; 0: ten seconds */
  uint32_t wait;      /* how leat_next_answer waits: leat_wait */
  uint32_t reserved;  /* 0 */
} leat_connect_options;

/* `options` may be NULL. On LEAT_ERROR_ok *out is owned by the caller (leat_disconnect). */
LEAT_API leat_error leat_connect(const leat_connect_options* options, leat_client** out);
/* Ends every stream; frames in flight are given up. Answers and frames of this client become invalid. NULL is allowed.
 */
LEAT_API void leat_disconnect(leat_client* client);

/* What leatd serves, and on what: the JSON of `leat status --json` without its "coordinated", for tools and for clients
 * that must know what an application takes and gives (its modules' "inputs" and "outputs"). A connection of its own
 * that ends with the call; `socket` NULL: leat_default_socket(). At most `bytes` bytes are written into `text`, with a
 * NUL; *needed (when wanted) is what the whole takes. LEAT_ERROR_no_room: `bytes` was less. Any thread. */
LEAT_API leat_error leat_status(const char* socket, char* text, size_t bytes, size_t* needed);

/* ---- streams ---- */
typedef struct leat_stream_options {
  const char* application;
  uint32_t format;                   /* leat_format */
  uint32_t width, height;            /* pixels, 1..16384; even for nv12 and i420 */
  uint32_t strides[LEAT_MAX_PLANES]; /* bytes a row of each plane; 0: tight, rounded up to 64 */
  uint32_t depth;                    /* requests waiting or running at once, 1..64; 0: 4 */
  uint32_t slots;                    /* frame slots; 0: depth + 3 (one being written, one being read, one spare), or,
                                        where depth is 0 too, as few as the application's pictures need (`latest`) */
  uint32_t overload;                 /* leat_overload */
  uint32_t priority;                 /* leat_priority */
  int64_t slo_ns;                    /* 0: the application's. The deadline is capture + slo */
  int64_t max_age_ns;                /* 0: none. An answer older than this, from capture, is worthless */
  int64_t period_ns;                 /* 0: not periodic */
  uint32_t memory;                   /* leat_slot_memory: LEAT_SLOT_HOST, LEAT_SLOT_BITSTREAM */
  uint32_t codec;                    /* leat_codec of a bitstream, else 0 */
  const leat_tensor_shape* tensors;  /* format tensors: the inputs, in the model's order; read by leat_open_stream */
  uint32_t tensor_count;             /* 1..8 with that format, else 0; width and height may be 0 then */
  uint32_t sla_drop_ppm; /* coordinated: accuracy it can spare, millionths, to 500000; needs period_ns. 0: not */
  /* Coordinated streams of one client with the same task_group, at most 4, are tasks that share what is asked for, so
   * that the weighted sum of what they lose is the least for its cost; those of one application take turns. 0: by
   * itself
   */
  uint32_t task_group;
  uint32_t task_weight; /* of that sum, thousandths, to 1000000; 0: 1000 */
  uint32_t
      local_drop_ppm; /* what is lost where a local algorithm takes the tracker's place, millionths; 0: it has none */
  uint32_t waits_for_grants; /* 1: its program looks whether a frame is wanted (leat_wanted); not with sla_drop_ppm */
  const char* name;          /* shown by `leat top`; NULL: the client's and a number. At most 31 bytes are kept */
  uint32_t color_range;      /* leat_color_range of its frames; 0: the default rule (frame_format.h) */
  uint32_t color_matrix;     /* leat_color_matrix, likewise. Of a bitstream, both 0: as the bitstream states */
} leat_stream_options;

/* Bitstreams (docs/guide/bitstreams.md): one access unit a slot, in decoding order, every one of them, its length in
 * leat_submit_options; `format` is what the codec's pictures are (LEAT_CODECS), width and height are those that are
 * shown, strides[0] is a slot's room in bytes (0: 3/4 byte a pixel and 64 KiB), at most 32 slots. A frame is answered
 * when its own picture is; one that is dropped is decoded all the same. */
/* Zeroes everything, then overload = latest and priority = normal. */
LEAT_API void leat_stream_options_init(leat_stream_options* options);
/* Creates and maps the stream's slots (leatd brings the memory, a few seconds per GiB). *out belongs to the client. */
LEAT_API leat_error leat_open_stream(leat_client* client, const leat_stream_options* options, leat_stream** out);
/* Frames in flight are answered `dropped(stream_closed)` or at the end of what runs; those answers are discarded.
 * The stream, its frames and its answers become invalid. */
LEAT_API leat_error leat_close_stream(leat_stream* stream);
LEAT_API uint32_t leat_stream_slots(const leat_stream* stream);
LEAT_API int64_t leat_stream_slo_ns(const leat_stream* stream); /* as granted by leatd */
/* Name of a class: head 0 the detector's or top-k classifier's classes, head 1 + h the names of label head h. NULL:
 * unknown. */
LEAT_API const char* leat_class_name(const leat_stream* stream, uint32_t head, int32_t class_id);

/* ---- frames ---- */
typedef struct leat_frame {
  leat_stream* stream;
  uint32_t slot, generation;
  uint32_t format, width, height;
  uint32_t plane_count;
  uint8_t* planes[LEAT_MAX_PLANES];  /* into shared memory */
  uint32_t strides[LEAT_MAX_PLANES]; /* bytes from row to row */
  uint32_t rows[LEAT_MAX_PLANES];
  uint32_t row_bytes[LEAT_MAX_PLANES]; /* bytes that carry pixels, <= stride */
  uint64_t bytes;                      /* room of the slot, from planes[0] */
  uint32_t tensor_count;               /* format tensors: tensors[0..tensor_count), else 0 */
  uint32_t reserved;
  void* tensors[LEAT_MAX_TENSORS]; /* into shared memory, 64-byte aligned */
  uint64_t tensor_bytes[LEAT_MAX_TENSORS];
  uint32_t color_range; /* leat_color_range. leat_acquire: what holds if leat_submit says nothing; leat_answer_frame: */
  uint32_t color_matrix; /* what the frame was served with. Never unspecified for nv12, i420 and gray8 pixels */
} leat_frame;

typedef struct leat_submit_options {
  int64_t
      capture_ns; /* when the picture was taken; 0: now. Later than now counts as now; the answer repeats it as it is */
  int64_t deadline_ns; /* 0: capture + SLO; otherwise may only tighten it */
  uint64_t cookie;     /* the caller's own; comes back in the answer */
  uint32_t key;        /* for latest_per_key */
  uint32_t items;      /* one request may be several items of one batch; 0: 1 */
  uint32_t flags; /* LEAT_SUBMIT_MORE: more frames follow at once; leat_flush() or a submit without it sends the wake */
  uint32_t bytes; /* of the access unit in the slot; 0 for pixels and tensors */
  uint32_t color_range;  /* leat_color_range of this frame; 0: the stream's */
  uint32_t color_matrix; /* leat_color_matrix, likewise */
} leat_submit_options;
#define LEAT_SUBMIT_MORE 1u
/* Of a bitstream: access units are missing between the one submitted before and this. Pictures up to the next key
 * picture are then answered failed(undecodable). */
#define LEAT_SUBMIT_GAP 2u
/* The decoder concealed an error in this frame, or the frame refers to one with an error. It is served as any other,
 * and its answer has LEAT_ANSWER_DAMAGED. */
#define LEAT_SUBMIT_DAMAGED 4u

/* A free slot to write into; LEAT_ERROR_ring_full when there is none. Never blocks. */
LEAT_API leat_error leat_acquire(leat_stream* stream, leat_frame* out);
/* Gives an acquired slot back unsubmitted. */
LEAT_API void leat_abandon(leat_frame* frame);
/* Hands the slot to leatd; the caller must not touch its pixels until the answer. On success exactly one answer
 * follows. `options` and `ticket` may be NULL; the ticket names the request for leat_cancel. On an error the slot is
 * still acquired. */
LEAT_API leat_error leat_submit(leat_frame* frame, const leat_submit_options* options, uint64_t* ticket);
LEAT_API leat_error leat_flush(leat_client* client);
/* Asks for an early end; the one answer says whether it came in time (`dropped(cancelled)`) or not. */
LEAT_API leat_error leat_cancel(leat_stream* stream, uint64_t ticket);

/* ---- grants (docs/guide/grants.md) ----
 * A stream opened with waits_for_grants looks whether a frame is wanted before it makes one. Where leatd has room for
 * all, every frame is. Where it has not, streams take turns, so that no frame is made, or copied, that another would
 * replace before it is looked at. A frame that is submitted without is served like anybody's. All on the submitting
 * thread. */

/* A frame taken at capture_ns (0: when it is made) could be submitted. 1: now; 0: it is not wanted yet. Asking again
 * costs nothing and uses nothing up; leat_submit uses the turn. Each later capture_ns counts as one more frame offered.
 * Of a coordinated stream as leat_should_submit; always 1 for one that does neither. No system call; some 10 ns. */
LEAT_API int leat_wanted(leat_stream* stream, int64_t capture_ns);
/* Waits until leat_wanted says 1. timeout_ns: 0 looks once, < 0 waits for ever. LEAT_ERROR_timed_out: it is not wanted
 * yet. Its turn is kept for some milliseconds, longer for streams whose frames have taken longer to come. Not for
 * coordinated streams, nor beside leat_answer_fd, whose descriptor is readable for both: with 0 it arms that. */
LEAT_API leat_error leat_wait_wanted(leat_stream* stream, int64_t capture_ns, int64_t timeout_ns);
/* For a program of one thread: waits until an answer is there to be taken, or a stream is told something new after
 * leat_wanted said 0 for it. LEAT_ERROR_timed_out: neither. */
LEAT_API leat_error leat_wait_any(leat_client* client, int64_t timeout_ns);

/* ---- coordinated streams (docs/guide/coordinated-streams.md) ----
 * A stream opened with sla_drop_ppm tracks its boxes by itself (leat/tracked_stream.hpp) and sends only the frames that
 * leatd asks for, so that it loses no more than that beside a stream with a partition of its own. All on the submitting
 * thread. */
typedef enum leat_standing {
  LEAT_STANDING_NONE = 0,     /* not coordinated, or not told yet */
  LEAT_STANDING_WAITING = 1,  /* no room: nothing is asked for until there is; also after an eviction */
  LEAT_STANDING_ADMITTED = 2, /* frames are asked for */
  LEAT_STANDING_SILENT = 3,   /* nothing came for two seconds: it is asked for one frame a second until it speaks */
  LEAT_STANDING_OPEN = 4,     /* waits for grants: every frame is wanted */
  LEAT_STANDING_TURNS = 5     /* waits for grants: one frame is wanted in each of its turns */
} leat_standing;

typedef struct leat_schedule {
  uint32_t standing; /* leat_standing */
  uint32_t interval; /* frames from one that is asked for to the next */
  uint32_t evictions;
  uint32_t granted;     /* turns so far, of a stream that waits for grants */
  int64_t next_ns;      /* a frame is asked for then; 0: none */
  double sla_drop;      /* accuracy, 0..1, that it may lose */
  double planned_drop;  /* that the plan loses, as estimated */
  double measured_drop; /* that was lost in the last second, by what it reported */
  double local_above;   /* with local_drop_ppm: the local algorithm is better than what is tracked from so much on that
                           the tracker expects to have lost (leat/local_choice.hpp); 0: not known */
} leat_schedule;

/* For each frame in the order in which they are taken: 1, it is to be submitted now; 0, it is not. Always 1 for a
 * stream that is not coordinated. No system call; some 10 ns. */
LEAT_API int leat_should_submit(leat_stream* stream, int64_t capture_ns);
/* The same where the tracker says what it expects to have lost on this frame by now, 0..1 (leat/certainty.hpp; below 0:
 * it does not say). Where leatd has seen that this is worth something, a frame is also to be submitted as soon as much
 * is expected to be lost, and fewer are otherwise. Use it for every frame, with leat_observe_expecting. */
LEAT_API int leat_should_submit_expecting(leat_stream* stream, int64_t capture_ns, double expected);
/* At an answer: the distance (leat/tracking.hpp, 0..1) between it and what tracking had made of the same frame,
 * `stride` frames (1..255) after the answer before. At most one report an answer counts. It only moves what this stream
 * is asked for, and leatd reads it when it is awake. LEAT_ERROR_ring_full: left out, which does no harm. */
LEAT_API leat_error leat_observe(leat_stream* stream, uint32_t stride, double drop);
/* The same with what the tracker had expected that drop to be, 0..1; below 0: it did not say. */
LEAT_API leat_error leat_observe_expecting(leat_stream* stream, uint32_t stride, double drop, double expected);
/* The same as leat_observe with what would still be tracked from an older answer, `stride` frames before
 * (leat/look_back.hpp says when: 16 frames and more, about every 96). It keeps a detector's flicker of some frames from
 * being taken for what tracking loses. At most one in three answers counts, beside leat_observe's. */
LEAT_API leat_error leat_observe_far(leat_stream* stream, uint32_t stride, double drop);
LEAT_API leat_error leat_schedule_of(leat_stream* stream, leat_schedule* out);

/* ---- answers ---- */
#define LEAT_ANSWER_DAMAGED 1u
typedef struct leat_answer {
  leat_stream* stream;
  uint64_t ticket, cookie;
  uint8_t outcome; /* leat_outcome */
  uint8_t reason;  /* leat_reason */
  uint8_t flags;   /* LEAT_ANSWER_DAMAGED: the frame was submitted so */
  uint8_t reserved;
  uint32_t slot;
  uint32_t generation;
  uint32_t where; /* index of the application's module where it was dropped or failed; UINT32_MAX: none */
  int64_t capture_ns, deadline_ns, answered_ns;
  const leat_result* result; /* NULL unless completed or late; valid until leat_release */
  uint64_t result_bytes;     /* room at result, head and parts: for leat_part_at (result_parts.h) */
} leat_answer;

/* The next answer of any stream of this client. timeout_ns: 0 polls, < 0 waits for ever. LEAT_ERROR_timed_out: none
 * came. Every answer must be released: that frees its slot. */
LEAT_API leat_error leat_next_answer(leat_client* client, int64_t timeout_ns, leat_answer* out);
/* The answered frame's pixels, still unchanged (for drawing on them), until leat_release. */
LEAT_API leat_error leat_answer_frame(const leat_answer* answer, leat_frame* out);
/* When the answered frame was first sent to a worker, until leat_release: from there to answered_ns it was computed on,
 * before that it waited. 0: it never was. The answering thread's. */
LEAT_API int64_t leat_dispatched_ns(const leat_answer* answer);
LEAT_API void leat_release(leat_answer* answer);
/* A descriptor for poll, epoll or asyncio, owned by the client: readable when answers may be there, hung up when leatd
 * is gone. Before each wait on it, the first too, call leat_next_answer(client, 0, ..) until it says timed_out: that
 * arms it. -1: disconnected. */
LEAT_API int leat_answer_fd(leat_client* client);

#ifdef __cplusplus
}
#endif
#endif
