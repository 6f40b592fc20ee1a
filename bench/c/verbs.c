// READs and fetch-and-adds through an RDMA device, with plain libibverbs: what rma/verbs is
// compared with (TestCostAgainstC). A queue pair joined with another one of this process, as a
// client's with a memory node's; one operation at a time, polled without a system call. And one
// word from one end to the other, until that has it: by a WRITE to memory at which it looks, and by
// SEND and RECV.
//
//   bench-c-verbs DEVICE GID_INDEX SECONDS   prints: read NS fao NS write NS send NS

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *received; // of the client, and of the other end
static struct ibv_qp *qp, *other;
static struct ibv_mr *mr;
static uint64_t words[64] __attribute__((aligned(64)));

static void check(int ok, const char *what) {
	if (ok) return;
	perror(what);
	exit(1);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void start(const char *device, int gid_index) {
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), device) == 0) context = ibv_open_device(list[i]);
	check(context != NULL, "no such device");
	check((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
	check((cq = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL, "ibv_create_cq");
	check((received = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL, "ibv_create_cq");
	check((mr = ibv_reg_mr(pd, words, sizeof words, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != NULL, "ibv_reg_mr");
	struct ibv_port_attr port;
	union ibv_gid gid;
	check(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, gid_index, &gid) == 0, "port");
	struct ibv_qp *pair[2];
	for (int k = 0; k < 2; k++) {
		struct ibv_qp_init_attr i = {.send_cq = cq, .recv_cq = received, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
		check((pair[k] = ibv_create_qp(pd, &i)) != NULL, "ibv_create_qp");
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
		check(ibv_modify_qp(pair[k], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
	}
	for (int k = 0; k < 2; k++) {
		struct ibv_qp_attr r = {.qp_state = IBV_QPS_RTR, .path_mtu = port.active_mtu, .dest_qp_num = pair[!k]->qp_num, .max_dest_rd_atomic = 16, .min_rnr_timer = 12,
			.ah_attr = {.is_global = 1, .dlid = port.lid, .port_num = 1, .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}}};
		check(ibv_modify_qp(pair[k], &r, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
		struct ibv_qp_attr s = {.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 6, .max_rd_atomic = 16};
		check(ibv_modify_qp(pair[k], &s, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
	}
	qp = pair[0];
	other = pair[1];
}

static void await(struct ibv_cq *q) {
	struct ibv_wc c;
	int n;
	while ((n = ibv_poll_cq(q, 1, &c)) == 0) {}
	check(n == 1 && c.status == IBV_WC_SUCCESS, "completion");
}

static void once(enum ibv_wr_opcode opcode) {
	struct ibv_sge g = {.addr = (uint64_t)(uintptr_t)&words[8], .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr w = {.opcode = opcode, .sg_list = &g, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
	if (opcode == IBV_WR_RDMA_READ) {
		w.wr.rdma.remote_addr = (uint64_t)(uintptr_t)words;
		w.wr.rdma.rkey = mr->rkey;
	} else {
		w.wr.atomic.remote_addr = (uint64_t)(uintptr_t)words;
		w.wr.atomic.rkey = mr->rkey;
		w.wr.atomic.compare_add = 1;
	}
	check(ibv_post_send(qp, &w, &bad) == 0, "ibv_post_send");
	await(cq);
}

static void one_read(void) { once(IBV_WR_RDMA_READ); }
static void one_add(void) { once(IBV_WR_ATOMIC_FETCH_AND_ADD); }

// tell brings the word at words[8] to words[16], by a WRITE or a SEND.
static void tell(enum ibv_wr_opcode opcode) {
	static uint64_t last;
	words[8] = ++last;
	struct ibv_sge from = {.addr = (uint64_t)(uintptr_t)&words[8], .length = 8, .lkey = mr->lkey};
	struct ibv_sge to = {.addr = (uint64_t)(uintptr_t)&words[16], .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr w = {.opcode = opcode, .sg_list = &from, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
	if (opcode == IBV_WR_RDMA_WRITE) {
		w.wr.rdma.remote_addr = to.addr;
		w.wr.rdma.rkey = mr->rkey;
	} else {
		struct ibv_recv_wr r = {.sg_list = &to, .num_sge = 1}, *bad_recv;
		check(ibv_post_recv(other, &r, &bad_recv) == 0, "ibv_post_recv");
	}
	check(ibv_post_send(qp, &w, &bad) == 0, "ibv_post_send");
	if (opcode == IBV_WR_SEND) await(received);
	while (__atomic_load_n(&words[16], __ATOMIC_ACQUIRE) != last) {}
	await(cq);
}

static void one_write(void) { tell(IBV_WR_RDMA_WRITE); }
static void one_send(void) { tell(IBV_WR_SEND); }

static double measure(void (*operation)(void), double seconds) {
	double begin = now(), end = begin + seconds * 1e9, t = begin;
	long n = 0;
	for (; t < end; t = now(), n += 20)
		for (int i = 0; i < 20; i++) operation();
	return (t - begin) / (double)n;
}

int main(int argc, char **argv) {
	if (argc != 4) {
		fprintf(stderr, "usage: %s DEVICE GID_INDEX SECONDS\n", argv[0]);
		return 2;
	}
	start(argv[1], atoi(argv[2]));
	double seconds = atof(argv[3]);
	printf("read %.0f", measure(one_read, seconds));
	printf(" fao %.0f", measure(one_add, seconds));
	printf(" write %.0f", measure(one_write, seconds));
	printf(" send %.0f\n", measure(one_send, seconds));
	return 0;
}
