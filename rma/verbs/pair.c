//go:build cgo && verbs

#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A lost packet is sent again after 4.096 us * 2^TIMEOUT, 0.27 s, at most RETRIES times. (A machine
// that is gone is an error long before the last of them, by its connection for control.) Shorter
// times make rdma_rxe on a busy machine send again what is not lost.
enum { TIMEOUT = 16, RETRIES = 7, RNR_RETRIES = 6 }; // 7 RNR_RETRIES mean for ever

static const uint32_t INLINE_BYTES = 64;

// create makes the queue pair with as much room for inline data as the device has, up to
// INLINE_BYTES.
static int create(nic_device *d, nic_pair *p) {
	for (uint32_t bytes = INLINE_BYTES;; bytes = 0) {
		struct ibv_qp_init_attr a = {
			.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = NIC_QUEUE, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = bytes},
		};
		errno = 0;
		if ((p->qp = ibv_create_qp(d->pd, &a)) != NULL) {
			p->max_inline = a.cap.max_inline_data;
			return 0;
		}
		if (bytes == 0) return errno ? errno : ENOMEM;
	}
}

int nic_pair_new(nic_device *d, nic_pair **out) {
	static uint32_t numbers;
	nic_pair *p = calloc(1, sizeof *p);
	if (p == NULL) return ENOMEM;
	pthread_mutex_init(&p->mutex, NULL);
	p->room = NIC_QUEUE;
	p->soft = d->way.soft;
	p->psn = (__atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED) * 2654435761u) & 0xffffff;
	int rc = 0;
	// As many places as work requests: each of them may end in an error.
	if ((p->cq = ibv_create_cq(d->context, NIC_QUEUE + 1, NULL, NULL, 0)) == NULL)
		rc = errno ? errno : ENOMEM;
	else
		rc = create(d, p);
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = d->way.port,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (rc == 0) rc = ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc != 0) {
		nic_pair_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

static int least(int a, int b) { return a < b ? a : b; }

void nic_pair_address(nic_device *d, nic_pair *p, nic_address *a) {
	memset(a, 0, sizeof *a);
	a->qpn = p->qp->qp_num;
	a->psn = p->psn;
	a->lid = d->way.lid;
	a->mtu = d->way.mtu;
	a->ethernet = d->way.ethernet;
	a->reads_in = (uint8_t)least(d->way.max_reads_in, 255);
	memcpy(a->gid, d->way.gid, 16);
}

int nic_pair_connect(nic_device *d, nic_pair *p, const nic_address *to) {
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)least(d->way.mtu, to->mtu), .dest_qp_num = to->qpn, .rq_psn = to->psn,
		.max_dest_rd_atomic = (uint8_t)least(d->way.max_reads_in, 255), .min_rnr_timer = 12,
		.ah_attr = {.dlid = to->lid, .port_num = d->way.port},
	};
	if (d->way.ethernet || to->lid == 0) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.sgid_index = (uint8_t)d->way.gid_index;
		a.ah_attr.grh.hop_limit = 64;
		memcpy(a.ah_attr.grh.dgid.raw, to->gid, 16);
	}
	int rc = ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc != 0) return rc;
	struct ibv_qp_attr s = {
		.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = RNR_RETRIES, .sq_psn = p->psn,
		.max_rd_atomic = (uint8_t)least(least(d->way.max_reads, to->reads_in), 255),
	};
	p->reads = p->max_reads = s.max_rd_atomic;
	return ibv_modify_qp(p->qp, &s, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void nic_pair_break(nic_pair *p, int cause) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	int32_t none = 0;
	__atomic_compare_exchange_n(&p->cause, &none, cause, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_store_n(&p->broken, 1, __ATOMIC_RELEASE);
	ibv_modify_qp(p->qp, &a, IBV_QP_STATE);
}

void nic_pair_free(nic_pair *p) {
	if (p->qp != NULL) ibv_destroy_qp(p->qp);
	if (p->cq != NULL) ibv_destroy_cq(p->cq);
	pthread_mutex_destroy(&p->mutex);
	free(p);
}
