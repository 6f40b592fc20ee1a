//go:build cgo && verbs

#include "nic.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 16 };

static const uint64_t LAST = 1; // in the number of a step's last work request, beside the step's address

static int opcode(int kind) {
	switch (kind) {
	case NIC_READ: return IBV_WR_RDMA_READ;
	case NIC_WRITE: return IBV_WR_RDMA_WRITE;
	case NIC_FETCH_AND_ADD: return IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
	return IBV_WR_ATOMIC_CMP_AND_SWP;
}

// request makes the work request of an operation.
static void request(nic_pair *p, nic_op *o, nic_step *s, struct ibv_send_wr *w, struct ibv_sge *g) {
	*g = (struct ibv_sge){.addr = o->local, .length = o->bytes, .lkey = o->local_key};
	memset(w, 0, sizeof *w);
	w->wr_id = (uint64_t)(uintptr_t)s;
	w->sg_list = g;
	w->num_sge = 1;
	w->opcode = (enum ibv_wr_opcode)opcode(o->kind);
	if (o->fence && !p->soft) w->send_flags |= IBV_SEND_FENCE;
	if (o->kind == NIC_WRITE && o->bytes <= p->max_inline) w->send_flags |= IBV_SEND_INLINE;
	if (o->kind == NIC_READ || o->kind == NIC_WRITE) {
		w->wr.rdma.remote_addr = o->remote;
		w->wr.rdma.rkey = o->key;
		return;
	}
	w->wr.atomic.remote_addr = o->remote;
	w->wr.atomic.rkey = o->key;
	w->wr.atomic.compare_add = o->kind == NIC_FETCH_AND_ADD ? o->operand : o->compare;
	w->wr.atomic.swap = o->operand;
}

// ended notes a completion. It may be of another thread's step.
static void ended(nic_pair *p, const struct ibv_wc *c) {
	nic_step *s = (nic_step *)(uintptr_t)(c->wr_id & ~LAST);
	if (c->status != IBV_WC_SUCCESS) {
		__atomic_store_n(&p->broken, 1, __ATOMIC_RELEASE);
		if (s->status == 0) s->status = c->status;
		int32_t none = 0;
		if (c->status != IBV_WC_WR_FLUSH_ERR) __atomic_compare_exchange_n(&p->cause, &none, c->status, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	if (c->wr_id & LAST) {
		__atomic_fetch_add(&p->reads, s->reads, __ATOMIC_RELEASE);
		__atomic_fetch_add(&p->room, s->places, __ATOMIC_RELEASE);
		__atomic_store_n(&s->posted, 0, __ATOMIC_RELEASE);
	}
}

// drain takes the completions that are there.
static void drain(nic_pair *p) {
	struct ibv_wc c[BATCH];
	int n = ibv_poll_cq(p->cq, BATCH, c);
	if (n <= 0) return;
	__atomic_fetch_add(&p->completions, (uint64_t)n, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++) ended(p, &c[i]);
}

void nic_poll(nic_pair *p, nic_step *s, int polls) {
	for (int i = 0; i < polls && __atomic_load_n(&s->posted, __ATOMIC_ACQUIRE); i++) drain(p);
}

// has_room reports whether the queue takes a step's list. A device would keep reads and atomics
// beyond its limit back by itself, but rdma_rxe then loses some, and stands still.
static int has_room(nic_pair *p, nic_step *s) {
	return __atomic_load_n(&p->room, __ATOMIC_ACQUIRE) >= s->places && __atomic_load_n(&p->reads, __ATOMIC_ACQUIRE) >= s->reads;
}

static int is_broken(nic_pair *p) { return __atomic_load_n(&p->broken, __ATOMIC_ACQUIRE); }

static int64_t now_s(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

// A machine that stood still itself for GIVE_UP_S has napped less often than LEAST_NAPS.
enum { SPINS = 100, NAP_US = 20, GIVE_UP_S = 5, LEAST_NAPS = 10000 };

// post posts a list of work requests once the queue has room.
static void post(nic_pair *p, struct ibv_send_wr *w, nic_step *s) {
	struct ibv_send_wr *bad;
	pthread_mutex_lock(&p->mutex);
	int64_t since = 0, naps = 0;
	for (int i = 0; !has_room(p, s) && !is_broken(p); i += i < SPINS) {
		drain(p);
		if (i < SPINS) continue;
		usleep(NAP_US);
		if (since == 0) since = now_s();
		if (++naps > LEAST_NAPS && now_s() - since > GIVE_UP_S) nic_pair_break(p, NIC_GIVEN_UP);
	}
	if (is_broken(p)) {
		s->status = IBV_WC_WR_FLUSH_ERR;
	} else {
		__atomic_fetch_sub(&p->room, s->places, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&p->reads, s->reads, __ATOMIC_RELAXED);
		__atomic_store_n(&s->posted, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&p->doorbells, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&p->operations, (uint64_t)s->places, __ATOMIC_RELAXED);
		if (ibv_post_send(p->qp, w, &bad) != 0) {
			nic_pair_break(p, NIC_NOT_POSTED); // a part of the list may be on its way, without its end
			s->status = NIC_NOT_POSTED;
			__atomic_store_n(&s->posted, 0, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&p->mutex);
}

// cut reports whether the list must end before an operation. rdma_rxe (Linux 6.1 to 6.12 at least)
// holds a fenced operation back until no READ or atomic is under way. One that it sends again is
// under way itself, or others behind it are, so it waits for good. Instead of a fence the list
// ends after a READ. Behind an atomic rdma_rxe needs none: its other end works in the order of
// the requests, and answers an atomic that comes again with what it has kept.
static int cut(const nic_pair *p, const nic_op *o, int read) { return p->soft && read && (o->fence & NIC_AFTER_READ); }

enum { LIST = NIC_WORDS };

int nic_post(nic_pair *p, nic_op *ops, int from, int n, int target, nic_step *s, int polls) {
	struct ibv_send_wr w[LIST];
	struct ibv_sge g[LIST];
	int i, k = 0, read = 0;
	s->status = s->reads = 0;
	for (i = from; i < n && k < LIST; i++) {
		if (ops[i].target != target) continue;
		if (cut(p, &ops[i], read)) break;
		read |= ops[i].kind == NIC_READ;
		if (ops[i].kind != NIC_WRITE && ++s->reads > p->max_reads) {
			s->reads--;
			break;
		}
		request(p, &ops[i], s, &w[k], &g[k]);
		if (k > 0) w[k - 1].next = &w[k];
		k++;
	}
	if (k == 0) return n;
	s->places = k;
	w[k - 1].send_flags |= IBV_SEND_SIGNALED;
	w[k - 1].wr_id |= LAST;
	post(p, w, s);
	nic_poll(p, s, polls);
	return i;
}
