// The C side of package verbs, as Go sees it: devices, registered memory, queue pairs, and steps
// of operations. Functions return 0 or an errno, unless said otherwise.
#ifndef RMALOCK_NIC_H
#define RMALOCK_NIC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>

enum { NIC_READ, NIC_WRITE, NIC_FETCH_AND_ADD, NIC_COMPARE_AND_SWAP };

// What an operation must wait for the answer to: a READ before it, an atomic before it.
enum { NIC_AFTER_READ = 1, NIC_AFTER_ATOMIC = 2 };

#define NIC_NAME 64
#define NIC_QUEUE 128 // work requests of a pair at once

// Why a step failed, beside enum ibv_wc_status.
enum { NIC_NOT_POSTED = 1000, NIC_GIVEN_UP };

// A way to a device: one of its ports, and one GID of that.
typedef struct {
	char name[NIC_NAME];
	uint8_t port, mtu, ethernet, roce2, active;
	uint8_t soft; // 1 for Soft-RoCE
	int32_t gid_index;
	uint8_t gid[16];
	uint16_t lid;
	int32_t atomics; // enum ibv_atomic_cap
	int32_t max_reads, max_reads_in, max_pairs, max_regions;
	uint64_t max_region;
	uint32_t max_message;
} nic_way;

typedef struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	nic_way way;
} nic_device;

// Where a pair is, for its other end.
typedef struct {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t gid[16];
	uint8_t mtu, ethernet;
	uint8_t reads_in; // reads and atomics that it answers at once
} nic_address;

typedef struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	pthread_mutex_t mutex; // of posting
	uint32_t max_inline, psn;
	int32_t max_reads; // reads and atomics under way at once
	uint8_t soft;      // 1 where IBV_SEND_FENCE is not to be used: see fences in step.c
	// Atomic: read by Go too.
	int32_t room;   // free places in the queue
	int32_t reads;  // reads and atomics that may still begin
	int32_t broken; // 1 after an error
	int32_t cause;  // the first status that is no consequence of another
	uint64_t doorbells, operations, completions;
} nic_pair;

typedef struct {
	uint64_t remote, local, operand, compare;
	uint32_t key, local_key, bytes;
	int32_t target;
	uint8_t kind, fence;
} nic_op;

// The operations of a handle that were posted to one target in one list.
typedef struct {
	int32_t posted; // atomic: 1 from the post to the last completion
	int32_t status; // 0, enum ibv_wc_status or one of the above
	int32_t places; // in the queue
	int32_t reads;  // and atomics among them
} nic_step;

// What a window's handle has in registered memory: its operations, what they bring and take.
#define NIC_PENDING 64 // rma.MaxPending
#define NIC_WORDS (NIC_PENDING + 2) // and two words of a wait
#define NIC_STAGE 1376 // words of bulk operations

typedef struct {
	nic_op ops[NIC_WORDS];
	nic_step steps[NIC_WORDS];
	int64_t words[NIC_WORDS];
	int64_t stage[NIC_STAGE];
} nic_handle;

int nic_ways(nic_way *ways, int max); // their number, or -errno
int nic_open(const nic_way *way, nic_device **device);
void nic_close(nic_device *d);
int nic_register(nic_device *d, void *memory, uint64_t bytes, int remote, struct ibv_mr **region);

int nic_pair_new(nic_device *d, nic_pair **pair);
void nic_pair_address(nic_device *d, nic_pair *p, nic_address *a);
int nic_pair_connect(nic_device *d, nic_pair *p, const nic_address *to);
void nic_pair_break(nic_pair *p, int cause); // ends all that is posted, with an error; cause 0 is none
void nic_pair_free(nic_pair *p);

// nic_post posts those of the operations from one to n that go to target in one list, and looks
// polls times for its end. It returns n, or the first one that is to be posted when the list is
// over: the pair has no more reads and atomics under way than max_reads, and Soft-RoCE gets no
// fence. nic_poll looks polls
// times for the end of a step of the pair.
int nic_post(nic_pair *p, nic_op *ops, int from, int n, int target, nic_step *s, int polls);
void nic_poll(nic_pair *p, nic_step *s, int polls);

#endif
